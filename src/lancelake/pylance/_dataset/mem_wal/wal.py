"""`dataset.wal`: durable upserts and deletes in milliseconds, and reads that include them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from lancelake.memwal.collect import DAY, Collected, collect_garbage
from lancelake.memwal.drop import drop_mem_wal
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.setup import set_up
from lancelake.memwal.status import WalStatus, wal_status
from lancelake.memwal.take_over import flush_tails
from lancelake.memwal.view import Freshness, MemWalView, open_view
from lancelake.pylance._dataset.mem_wal.wal_reads import WalReads
from lancelake.pylance._dataset.mem_wal.wal_rows import newest
from lancelake.pylance._dataset.mem_wal.wal_writer import WalWriter
from lancelake.pylance._dataset.rows.merge import MergeStats


class TableWal(WalReads):
    """Durable upserts and deletes of a table, and reads that include them.

    Examples:
        >>> ds.wal.initialize(key="id", buckets=1)
        >>> with ds.wal.writer() as writer:
        ...     writer.put([{"id": 4, "name": "di", "score": 4.5}])
        >>> ds.wal.merge()
        {'num_inserted_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0}
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __repr__(self) -> str:
        return f"TableWal({self._dataset.uri!r})"

    def initialize(
        self,
        *,
        buckets: int | None = None,
        key: str | Sequence[str] | None = None,
        by_value_of: str | None = None,
        unsharded: bool = False,
        **settings: int | bool,
    ) -> None:
        """Add a MemWAL to the table, and move the dataset to the new version.

        Args:
            buckets: Number of regions, which rows are assigned to by the hash of the first key
                column; 8 by default.
            key: The primary key, which is declared if the table has none.
            by_value_of: Key column of which each value has its own region.
            unsharded: All rows are in one region.
            **settings: Limits of writers, recorded for all of them.

        Raises:
            InvalidRequestError: There is no key, or the arguments exclude each other.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=4)
            >>> ds.wal.count_rows()
            3
        """
        self._dataset._snapshot = set_up(
            newest(self._dataset._snapshot),
            buckets=buckets,
            key=key,
            value_column=by_value_of,
            unsharded=unsharded,
            settings=settings,
            choices=self._dataset._choices,
        )

    def writer(self, *, merge_every: timedelta | None = None, **settings: int | bool) -> WalWriter:
        """Return a writer; a region is claimed by the first of its rows.

        Args:
            merge_every: Interval at which a thread of the writer merges flushed rows.
            **settings: `max_memtable_rows`, `max_memtable_batches`, `max_memtable_size` and
                `max_unflushed_memtable_bytes`; those that are not given are the table's.

        Returns:
            The writer, which is a context manager.

        Raises:
            InvalidRequestError: The table has no MemWAL, or a setting is unknown.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer(max_memtable_rows=1000) as writer:
            ...     writer.delete([3])
            >>> ds.wal.count_rows()
            2
        """
        return WalWriter(
            newest(self._dataset._snapshot),
            settings,
            merge_every=merge_every,
            choices=self._dataset._choices,
        )

    def merge(self, *, flush: bool = False) -> MergeStats:
        """Merge all flushed rows into the table with one commit, and move to the new version.

        Args:
            flush: Flush rows that are only in the WAL first; this stops the writers of their
                regions.

        Returns:
            The numbers of inserted, updated and deleted rows.

        Raises:
            RetryableConflictError: Every retry conflicted.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.delete([3])
            >>> ds.wal.merge()
            {'num_inserted_rows': 0, 'num_updated_rows': 0, 'num_deleted_rows': 1}
            >>> ds.count_rows()
            2
        """
        base = newest(self._dataset._snapshot)
        if flush:
            flush_tails(base)
        done = merge_generations(base, choices=self._dataset._choices)
        self._dataset._snapshot = done.snapshot
        return MergeStats(
            num_inserted_rows=done.counts.inserted,
            num_updated_rows=done.counts.updated,
            num_deleted_rows=done.counts.deleted,
        )

    def status(self) -> WalStatus:
        """Return the state of each region: what is merged, flushed, and only in the WAL.

        Returns:
            The regions.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.delete([3])
            >>> len(ds.wal.status().regions)
            1
        """
        return wal_status(newest(self._dataset._snapshot))

    def collect_garbage(self, *, older_than: timedelta = DAY, dry_run: bool = False) -> Collected:
        """Remove generations that were merged before a time, and WAL entries that are flushed.

        Args:
            older_than: Age of what is removed, a day by default. Readers of older versions need
                what is younger.
            dry_run: Remove nothing.

        Returns:
            What was removed.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> collected = ds.wal.collect_garbage(dry_run=True)
        """
        base = newest(self._dataset._snapshot)
        return collect_garbage(base, older_than=older_than, dry_run=dry_run)

    def drop(self, *, discard: bool = False) -> None:
        """Remove the MemWAL from the table, and stop its writers.

        Args:
            discard: Discard rows that are not merged.

        Raises:
            InvalidRequestError: There are rows that are not merged, and `discard` is False.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> ds.wal.drop()
            >>> ds.mem_wal_index_details() is None
            True
        """
        self._dataset._snapshot = drop_mem_wal(
            newest(self._dataset._snapshot), discard=discard, choices=self._dataset._choices
        )

    def _view(self, freshness: str | Freshness) -> MemWalView:
        return open_view(newest(self._dataset._snapshot), Freshness.named(freshness))
