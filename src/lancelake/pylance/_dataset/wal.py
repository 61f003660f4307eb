"""`ds.wal`: MemWAL of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values import wal as core_wal
from lancelake.core.values.metadata import public_schema
from lancelake.core.values.writes import DEFAULT_CHOICES, CommitChoices
from lancelake.errors import naming
from lancelake.pylance._dataset.merge import MergeStats
from lancelake.pylance._dataset.wal_reads import WalReads, key_rows, newest, rows_of
from lancelake.pylance._values.opened import version_text


class WalWriter(WalReads):
    """Writer of upserts and deletes; threads may share it.

    A call of `put` or `delete` is durable when it returns, and atomic within each region. Each
    region has one writer: a writer that another one has replaced raises WriterFencedError. Reads of
    this object take the rows that are not flushed from memory.

    Examples:
        >>> ds.wal.initialize(key="id", buckets=1)
        >>> with ds.wal.writer() as writer:
        ...     writer.put([{"id": 1, "name": "eve", "score": 0.5}])
        ...     writer.get([1], columns=["name"]).to_pydict()
        {'name': ['eve']}
    """

    def __init__(
        self,
        table: Table,
        settings: Mapping[str, int | bool],
        *,
        merge_every: timedelta | None = None,
        choices: CommitChoices = DEFAULT_CHOICES,
    ) -> None:
        self._base = base = table.snapshot
        self._merger: core_wal.BackgroundMerger | None = None
        with naming(base.location.uri, base.version):
            options = core_wal.writer_options(table.wal.details().writer_defaults, settings)
        self._writer = table.wal.writer(options)
        if merge_every is not None:
            self._merger = table.wal.merge_in_background(every=merge_every, choices=choices)

    def __repr__(self) -> str:
        return version_text(self, self._base)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(flush=kind is None)

    def put(self, data: Any, *, schema: pa.Schema | None = None) -> None:
        """Insert rows, or replace those of the same key; durable when this returns.

        Args:
            data: The rows, with all columns of the table.
            schema: Schema of data that has no types of its own; by default the table's.

        Raises:
            WriterFencedError: Another writer has claimed the region.
            SchemaMismatchError: The rows do not fit the columns of the table.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.put([{"id": 4, "name": "di", "score": 4.5}])
            >>> ds.wal.count_rows()
            4
        """
        own = schema or public_schema(self._base.manifest.schema)
        with naming(self._base.location.uri, self._base.version):
            self._writer.put(rows_of(data, own))

    def delete(self, keys: Any) -> None:
        """Delete the rows of keys; durable when this returns.

        Args:
            keys: Values of the key column, or rows with the key columns.

        Raises:
            WriterFencedError: Another writer has claimed the region.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.delete([1, 2])
            >>> ds.wal.count_rows()
            1
        """
        with naming(self._base.location.uri, self._base.version):
            self._writer.delete(key_rows(self._base, keys))

    def flush(self) -> None:
        """Write all rows in memory as generations, which can be merged.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.delete([1])
            ...     writer.flush()
            ...     ds.wal.count_rows(freshness="flushed")
            2
        """
        self._writer.flush()

    def close(self, *, flush: bool = True) -> None:
        """Flush and stop.

        Args:
            flush: Without it, rows that are not flushed stay in the WAL, from which the next writer
                of the region reads them.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> writer = ds.wal.writer()
            >>> writer.delete([1])
            >>> writer.close(flush=False)
            >>> ds.wal.count_rows()
            2
        """
        try:
            self._writer.close(flush=flush)
        finally:
            if self._merger is not None:
                self._merger.close()

    def _view(self, freshness: str | core_wal.Freshness) -> core_wal.MemWalView:
        wanted = core_wal.Freshness.named(freshness)
        return newest(self._base).wal.view(wanted, self._writer.writers)


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
        self._dataset._snapshot = newest(self._dataset._snapshot).wal.set_up(
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
        wal = newest(self._dataset._snapshot).wal
        if flush:
            wal.flush_tails()
        done = wal.merge(choices=self._dataset._choices)
        self._dataset._snapshot = done.snapshot
        return MergeStats(
            num_inserted_rows=done.counts.inserted,
            num_updated_rows=done.counts.updated,
            num_deleted_rows=done.counts.deleted,
        )

    def status(self) -> core_wal.WalStatus:
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
        return newest(self._dataset._snapshot).wal.status()

    def collect_garbage(
        self, *, older_than: timedelta = core_wal.DAY, dry_run: bool = False
    ) -> core_wal.Collected:
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
        wal = newest(self._dataset._snapshot).wal
        return wal.collect_garbage(older_than=older_than, dry_run=dry_run)

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
        wal = newest(self._dataset._snapshot).wal
        self._dataset._snapshot = wal.drop(discard=discard, choices=self._dataset._choices)

    def _view(self, freshness: str | core_wal.Freshness) -> core_wal.MemWalView:
        return newest(self._dataset._snapshot).wal.view(core_wal.Freshness.named(freshness))
