"""Reads of a dataset with the rows of its MemWAL."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values.metadata import Snapshot, key_names, public_schema
from lancelake.core.values.reads import DEFAULT_K
from lancelake.core.values.versions import Latest
from lancelake.core.values.wal import Freshness, MemWalView, ViewRequest, ViewSearch, find_rows
from lancelake.core.values.writes import to_reader
from lancelake.errors import InvalidRequestError, naming
from lancelake.pylance._dataset.arguments import Filter, PandasOptions
from lancelake.pylance._dataset.searching import nearest_of
from lancelake.pylance._values.opened import chosen, takes, version_text
from lancelake.pylance.query import FullTextQuery, text_query


def newest(base: Snapshot) -> Table:
    """Open the newest version of a version's line."""
    return Table(base).at(Latest())


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


DURABLE = Freshness.DURABLE.value


class WalScanner:
    """A scan of the newest rows, ready to run."""

    def __init__(self, view: MemWalView, request: ViewRequest) -> None:
        self._view = view
        self._request = request

    def __repr__(self) -> str:
        return version_text(self, self._view.base, **chosen(self._request))

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

    @takes(scanner)
    def to_table(self, **kwargs: Any) -> pa.Table:
        """Read the newest row of each key into memory.

        Returns:
            The rows, in any order.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> with ds.wal.writer() as writer:
            ...     writer.put([{"id": 4, "name": "di", "score": 4.5}])
            >>> ds.wal.to_table(["name"], "id = 4").to_pydict()
            {'name': ['di']}
        """
        return self.scanner(**kwargs).to_table()

    @takes(scanner)
    def to_batches(self, **kwargs: Any) -> Iterator[pa.RecordBatch]:
        """Read the newest row of each key batch by batch.

        Examples:
            >>> ds.wal.initialize(key="id", buckets=1)
            >>> sum(batch.num_rows for batch in ds.wal.to_batches())
            3
        """
        yield from self.scanner(**kwargs).to_batches()

    def count_rows(self, filter: Filter = None, *, freshness: str | Freshness = DURABLE) -> int:
        """Count the keys that have a row.

        Args:
            filter: SQL, or an expression of `pyarrow.compute`, on the newest rows.
            freshness: `base`, `flushed` or `durable`.

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
