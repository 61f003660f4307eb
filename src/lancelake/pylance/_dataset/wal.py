"""`dataset.wal`: durable upserts and deletes in milliseconds, and reads that include them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

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

    def to_pandas(self, **kwargs: Any) -> Any:
        """Read everything into a pandas data frame."""
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
        """Prepare a scan; the filter applies to the newest rows."""
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
        """Read the newest rows into memory."""
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
        """Read the newest rows batch by batch."""
        yield from self.scanner(columns, filter, limit, offset, freshness=freshness).to_batches()

    def count_rows(self, filter: Filter = None, *, freshness: str | Freshness = DURABLE) -> int:
        """Count the newest rows."""
        return self._view(freshness).count_rows(filter)

    def get(
        self,
        keys: Any,
        columns: list[str] | None = None,
        *,
        freshness: str | Freshness = DURABLE,
    ) -> pa.Table:
        """Return the newest rows of keys, in any order; keys without a row are left out.

        Keys are values of the key column, or rows with the key columns.
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

        Queries are given as to `LanceDataset.search`. Rows that are not merged take part; the
        filter applies before the search.
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
        """Insert rows, or replace those of the same key; durable when this returns."""
        own = schema or public_schema(self._base.manifest.schema)
        self._writer.put(rows_of(data, own))

    def delete(self, keys: Any) -> None:
        """Delete the rows of keys, which are given as to `get`; durable when this returns."""
        self._writer.delete(key_rows(self._base, keys))

    def flush(self) -> None:
        """Write all rows in memory as generations, which can be merged."""
        self._writer.flush()

    def close(self, *, flush: bool = True) -> None:
        """Flush and stop; without `flush`, rows that are not flushed stay in the WAL."""
        try:
            self._writer.close(flush=flush)
        finally:
            if self._merger is not None:
                self._merger.close()

    def _view(self, freshness: str | Freshness) -> MemWalView:
        wanted = Freshness.named(freshness)
        return open_view(newest(self._base), wanted, self._writer.writers)


class TableWal(WalReads):
    """Methods of `dataset.wal`."""

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

        `key` is the primary key, which is declared if the table has none. Rows are divided into
        regions by the hash of the first key column, by default into 8 buckets. With `by_value_of`,
        each value of a key column has its own region; with `unsharded`, all rows are in one.
        Settings are the limits of writers, recorded for all of them.
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

        With `merge_every`, a thread of the writer merges flushed rows at this interval.
        Settings are `max_memtable_rows`, `max_memtable_batches`, `max_memtable_size` and
        `max_unflushed_memtable_bytes`; those that are not given are the table's.
        """
        return WalWriter(
            newest(self._dataset._snapshot),
            settings,
            merge_every=merge_every,
            choices=self._dataset._choices,
        )

    def merge(self, *, flush: bool = False) -> MergeStats:
        """Merge all flushed rows into the table with one commit, and move to the new version.

        With `flush`, rows that are only in the WAL are flushed first; this stops the writers of
        their regions.
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
        """Return the state of each region: what is merged, flushed, and only in the WAL."""
        return wal_status(newest(self._dataset._snapshot))

    def collect_garbage(self, *, older_than: timedelta = DAY, dry_run: bool = False) -> Collected:
        """Remove generations that were merged before a time, and WAL entries that are flushed."""
        base = newest(self._dataset._snapshot)
        return collect_garbage(base, older_than=older_than, dry_run=dry_run)

    def drop(self, *, discard: bool = False) -> None:
        """Remove the MemWAL from the table, and stop its writers.

        Rows that are not merged are refused unless they are to be discarded.
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
