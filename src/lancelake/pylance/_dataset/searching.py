"""SQL queries, and the query vectors of searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.reads import (
    Nearest,
    SqlRequest,
)
from lancelake.errors import InvalidRequestError
from lancelake.pylance._dataset.arguments import (
    asks_for_blob_values,
)
from lancelake.pylance._dataset.scanner import in_bytes
from lancelake.pylance._dataset.scanner_builder import VectorSearchOptions
from lancelake.pylance._values.opened import chosen, version_text


def nearest_of(snapshot: Snapshot, given: Mapping[str, Any]) -> Nearest:
    """Return the query of a search by vector; the only vector column needs no name."""
    if "k" in given:
        raise InvalidRequestError("k is an argument of the search, not of its query vector")
    column = Table(snapshot).vector_column(given.get("column"))
    return _Query().nearest(**{**given, "column": column}).value


class _Query(VectorSearchOptions):
    """Takes the arguments of `nearest` as a scan builder does."""

    value: Nearest

    def _with(self, **changes: Any) -> Self:
        self.value = changes["nearest"]
        return self


class SqlQuery:
    """A query of one version, ready to run."""

    def __init__(
        self, snapshot: Snapshot, request: SqlRequest, batch_bytes: int | None = None
    ) -> None:
        self._snapshot = snapshot
        self._request = request
        self._batch_bytes = batch_bytes

    def __repr__(self) -> str:
        return version_text(self, self._snapshot, **chosen(self._request))

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Return the whole result.

        Returns:
            The batches, without empty ones.

        Examples:
            >>> ds.sql("SELECT id FROM dataset").build().to_batch_records()[0].num_rows
            3
        """
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Return the result as a stream.

        Returns:
            A reader that runs the query while it is read.

        Examples:
            >>> ds.sql("SELECT id FROM dataset").build().to_stream_reader().read_all().num_rows
            3
        """
        rows = Table(self._snapshot).query(self._request).run()
        return rows if self._batch_bytes is None else in_bytes(rows, self._batch_bytes)

    def explain_plan(self) -> str:
        """Describe the plan of the query.

        Examples:
            >>> "score" in ds.sql("SELECT score FROM dataset").build().explain_plan()
            True
        """
        return Table(self._snapshot).query(self._request).explain()


class SqlQueryBuilder:
    """Builds a query from options; every method but `build` returns the builder.

    Examples:
        >>> builder = ds.sql("SELECT count(*) AS n FROM people").table_name("people")
        >>> builder.build().to_batch_records()[0].to_pydict()
        {'n': [3]}
    """

    def __init__(self, snapshot: Snapshot, sql: str) -> None:
        self._snapshot = snapshot
        self._request = SqlRequest(text=sql)
        self._batch_bytes: int | None = None

    def __repr__(self) -> str:
        return version_text(self, self._snapshot, **chosen(self._request))

    def _with(self, **changes: Any) -> SqlQueryBuilder:
        self._request = replace(self._request, **changes)
        return self

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Set the name of the table in the query.

        Args:
            table_name: The name; by default `dataset`.

        Examples:
            >>> query = ds.sql("SELECT id FROM people").table_name("people").build()
            >>> query.to_stream_reader().read_all().num_rows
            3
        """
        return self._with(table_name=table_name)

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Add the column `_rowid` to the table.

        Args:
            with_row_id: Whether to add it.

        Examples:
            >>> query = ds.sql("SELECT max(_rowid) AS last FROM dataset").with_row_id().build()
            >>> query.to_batch_records()[0].to_pydict()
            {'last': [2]}
        """
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Add the column `_rowaddr` to the table.

        Args:
            with_row_addr: Whether to add it.

        Examples:
            >>> query = ds.sql("SELECT max(_rowaddr) AS last FROM dataset").with_row_addr().build()
            >>> query.to_batch_records()[0].to_pydict()
            {'last': [2]}
        """
        return self._with(with_row_address=with_row_addr)

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """Choose how blobs are returned.

        Args:
            blob_handling: `all_binary` for bytes; other values return descriptors.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset").blob_handling("all_binary").build()
            >>> query.to_batch_records()[0].num_rows
            3
        """
        return self._with(blob_values=asks_for_blob_values(blob_handling))

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Set the size of batches in rows.

        Args:
            batch_size: Rows per batch, at most.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset").batch_size(2).build()
            >>> max(batch.num_rows for batch in query.to_stream_reader())
            2
        """
        return self._with(batch_size=batch_size)

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """Set the size of batches in bytes.

        Args:
            batch_size_bytes: Bytes per batch, at most, unless a single row is larger.

        Raises:
            InvalidRequestError: The size is not above 0.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset").batch_size_bytes(8).build()
            >>> [batch.num_rows for batch in query.to_stream_reader()]
            [1, 1, 1]
        """
        if batch_size_bytes <= 0:
            problem = f"batch_size_bytes must be greater than 0, got {batch_size_bytes}"
            raise InvalidRequestError(problem, batch_size_bytes=batch_size_bytes)
        self._batch_bytes = batch_size_bytes
        return self

    def build(self) -> SqlQuery:
        """Return the query.

        Returns:
            The query, which is validated when it runs.

        Examples:
            >>> ds.sql("SELECT id FROM dataset").build().to_stream_reader().read_all().num_rows
            3
        """
        return SqlQuery(self._snapshot, self._request, self._batch_bytes)
