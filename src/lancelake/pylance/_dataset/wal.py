"""`dataset.wal`: durable upserts and deletes in milliseconds, and reads that include them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, Unpack

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, naming
from lancelake.format.arrow_schema import public_schema
from lancelake.format.primary_key import key_names
from lancelake.memwal.background import BackgroundMerger
from lancelake.memwal.collect import DAY, Collected, collect_garbage
from lancelake.memwal.drop import drop_mem_wal
from lancelake.memwal.initialize import details_of
from lancelake.memwal.lookup import find_rows
from lancelake.memwal.merge import merge_generations
from lancelake.memwal.search import ViewSearch
from lancelake.memwal.settings import writer_options
from lancelake.memwal.setup import set_up
from lancelake.memwal.status import WalStatus, wal_status
from lancelake.memwal.table_writer import TableWriter
from lancelake.memwal.take_over import flush_tails
from lancelake.memwal.view import Freshness, MemWalView, ViewRequest, open_view
from lancelake.pylance._dataset.merge import MergeStats
from lancelake.pylance._dataset.options import PandasOptions
from lancelake.pylance._dataset.scan_arguments import Filter
from lancelake.pylance._dataset.searching import nearest_of
from lancelake.pylance.query import FullTextQuery, text_query
from lancelake.scan.nearest import DEFAULT_K
from lancelake.table.ingest import to_reader
from lancelake.table.open import Latest, open_snapshot
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

DURABLE = Freshness.DURABLE.value


class WalScanner:
    """A scan of the newest rows, ready to run."""

    def __init__(self, view: MemWalView, request: ViewRequest) -> None:
        self._view = view
        self._request = request

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._view.scan(self._request).schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the table."""
        return public_schema(self._view.shape.table)

    def to_reader(self) -> pa.RecordBatchReader:
        """Read as a stream."""
        return self._view.scan(self._request)

    def to_table(self) -> pa.Table:
        """Read everything into memory."""
        return self.to_reader().read_all()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Read batch by batch."""
        yield from self.to_reader()

    def to_pandas(self, **kwargs: Unpack[PandasOptions]) -> Any:
        """Read everything into a pandas data frame.

        Args:
            **kwargs: Arguments of `pyarrow.Table.to_pandas`.

        Returns:
            The rows as a `pandas.DataFrame`.
        """
        return self.to_table().to_pandas(**kwargs)

    def count_rows(self) -> int:
        """Count the rows of the result."""
        if self._request.limit is None and not self._request.offset:
            return self._view.count_rows(self._request.filter)
        return sum(batch.num_rows for batch in self.to_reader())


class WalReads(ABC):
    """Reads of the newest row of each key.

    `freshness` is `base` for rows that are merged into the table, `flushed` for those of
    generations too, and `durable`, the default, for every write that has returned. Reads start from
    the newest version of the table.
    """

    @abstractmethod
    def _view(self, freshness: str | Freshness) -> MemWalView:
        """Open the view of the newest version."""

    def scanner(
        self,
        columns: list[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        freshness: str | Freshness = DURABLE,
    ) -> WalScanner:
        """Prepare a scan of the newest row of each key.

        Args:
            columns: Names; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`, on the newest rows.
            limit: Rows to return, at most.
            offset: Rows to skip.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The scan, not yet started.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> ds.wal.scanner(["id"], "id > 1").count_rows()
            2
        """
        request = ViewRequest(
            columns=None if columns is None else tuple(columns),
            filter=filter,
            limit=limit,
            offset=offset or 0,
        )
        return WalScanner(self._view(freshness), request)

    def to_table(
        self,
        columns: list[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        freshness: str | Freshness = DURABLE,
    ) -> pa.Table:
        """Read the newest row of each key into memory.

        Args:
            columns: Names; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`, on the newest rows.
            limit: Rows to return, at most.
            offset: Rows to skip.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The rows, in any order.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.put([{"id": 4, "name": "di", "score": 4.5}])
            >>> ds.wal.to_table(["name"], "id = 4").to_pydict()
            {'name': ['di']}
        """
        return self.scanner(columns, filter, limit, offset, freshness=freshness).to_table()

    def to_batches(
        self,
        columns: list[str] | None = None,
        filter: Filter = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        freshness: str | Freshness = DURABLE,
    ) -> Iterator[pa.RecordBatch]:
        """Read the newest row of each key batch by batch.

        Args:
            columns: Names; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`, on the newest rows.
            limit: Rows to return, at most.
            offset: Rows to skip.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The batches.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> sum(batch.num_rows for batch in ds.wal.to_batches())
            3
        """
        yield from self.scanner(columns, filter, limit, offset, freshness=freshness).to_batches()

    def count_rows(self, filter: Filter = None, *, freshness: str | Freshness = DURABLE) -> int:
        """Count the keys that have a row.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`, on the newest rows.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The number of rows.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.delete([1])
            >>> ds.wal.count_rows(), ds.wal.count_rows(freshness="base")
            (2, 3)
        """
        return self._view(freshness).count_rows(filter)

    def get(
        self,
        keys: Any,
        columns: list[str] | None = None,
        *,
        freshness: str | Freshness = DURABLE,
    ) -> pa.Table:
        """Return the newest rows of keys.

        Args:
            keys: Values of the key column, or rows with the key columns.
            columns: Names; by default all columns.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The rows, in any order; keys without a row are left out.

        Raises:
            InvalidRequestError: The keys are not values or rows of the key columns.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> ds.wal.get([2, 9], columns=["name"]).to_pydict()
            {'name': ['bob']}
        """
        view = self._view(freshness)
        with naming(view.base.location.uri, view.base.version):
            rows = find_rows(view, key_rows(view.base, keys))
            return rows if columns is None else rows.select(columns)

    def search(
        self,
        full_text_query: str | FullTextQuery | Mapping[str, Any] | None = None,
        nearest: Mapping[str, Any] | None = None,
        *,
        k: int = DEFAULT_K,
        columns: list[str] | None = None,
        filter: Filter = None,
        freshness: str | Freshness = DURABLE,
    ) -> pa.Table:
        """Return the `k` best of the newest rows for a full text query, or for a query vector.

        Rows that are not merged take part.

        Args:
            full_text_query: As in `LanceDataset.search`.
            nearest: As in `LanceDataset.search`.
            k: Rows to return, at most.
            columns: Names; by default all columns.
            filter: SQL, or an expression of `pyarrow.compute`; it applies before the search.
            freshness: `base`, `flushed` or `durable`.

        Returns:
            The rows, best first.

        Raises:
            InvalidRequestError: Neither or both of the queries are given.

        Examples:
            >>> docs.wal.initialize(key="id", buckets=1)
            >>> docs.wal.search(nearest={"q": [0, 1]}, k=1, columns=["id"])["id"].to_pylist()
            [2]
        """
        one = nearest if full_text_query is None else full_text_query
        if one is None or (full_text_query is not None and nearest is not None):
            raise InvalidRequestError("a search of the MemWAL needs a text or a query vector")
        view = self._view(freshness)
        names = None if columns is None else tuple(columns)
        search = ViewSearch(view=view, columns=names, filter=filter)
        with naming(view.base.location.uri, view.base.version):
            count = operator.index(k)
            if nearest is not None:
                return search.nearest(replace(nearest_of(view.base, nearest), k=count))
            return search.text(text_query(one), count)


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
            buckets: Divide rows into so many regions by the hash of the first key column; 8 by
                default.
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


def newest(base: Snapshot) -> Snapshot:
    """Open the newest version of a version's line."""
    return open_snapshot(base.location, Latest(), main=base.main_location)


def key_rows(base: Snapshot, keys: Any) -> pa.Table | pa.RecordBatch:
    """Return keys as rows of the key columns; values are those of the only key column."""
    own = key_names(base.manifest.schema)
    schema = public_schema(base.manifest.schema)
    wanted = pa.schema([schema.field(name) for name in own])
    if isinstance(keys, pa.Array | pa.ChunkedArray) or _is_plain(keys):
        if len(own) != 1:
            raise InvalidRequestError(
                f"the key has the columns {', '.join(own)}",
                action="Pass keys as rows with these columns.",
            )
        return pa.table([_values(keys, wanted.field(0))], schema=wanted)
    rows = rows_of(keys, wanted)
    missing = [name for name in own if name not in rows.schema.names]
    if missing:
        raise InvalidRequestError(f"keys have no column {missing[0]}", column=missing[0])
    return rows.select(list(own))


def _values(keys: Any, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    try:
        if isinstance(keys, pa.Array | pa.ChunkedArray):
            return keys.cast(field.type)
        return pa.array(list(keys), field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        msg = f"keys are not values of column {field.name} of type {field.type}: {error}"
        raise InvalidRequestError(msg, column=field.name) from error


def _is_plain(keys: Any) -> bool:
    """Whether keys are values, and not rows."""
    if not isinstance(keys, list | tuple | set | frozenset | range):
        return False
    return not any(isinstance(key, Mapping | pa.RecordBatch | pa.Table) for key in keys)


def rows_of(data: Any, schema: pa.Schema) -> pa.Table | pa.RecordBatch:
    """Return rows of any supported type; the schema is for data without types of its own."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data
    return to_reader(data, schema).read_all()
