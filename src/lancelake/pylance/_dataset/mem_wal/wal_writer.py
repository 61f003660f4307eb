"""`WalWriter`: durable upserts and deletes through the MemWAL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import naming
from lancelake.format.arrow_schema import public_schema
from lancelake.memwal.background import BackgroundMerger
from lancelake.memwal.initialize import details_of
from lancelake.memwal.settings import writer_options
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.view import Freshness, MemWalView, open_view
from lancelake.pylance._dataset.mem_wal.wal_reads import WalReads
from lancelake.pylance._dataset.mem_wal.wal_rows import key_rows, newest, rows_of
from lancelake.pylance._values.reprs import version_text
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices


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
        base: Snapshot,
        settings: Mapping[str, int | bool],
        *,
        merge_every: timedelta | None = None,
        choices: CommitChoices = DEFAULT_CHOICES,
    ) -> None:
        self._base = base
        self._merger: BackgroundMerger | None = None
        with naming(base.location.uri, base.version):
            options = writer_options(details_of(base).writer_defaults, settings)
            self._writer = TableWriter(base, options)
        if merge_every is not None:
            self._merger = BackgroundMerger(base, every=merge_every, choices=choices)

    def __repr__(self) -> str:
        return version_text(self, self._base)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def _view(self, freshness: str | Freshness) -> MemWalView:
        wanted = Freshness.named(freshness)
        return open_view(newest(self._base), wanted, self._writer.writers)
