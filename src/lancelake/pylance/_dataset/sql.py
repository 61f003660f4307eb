"""Queries in SQL, described step by step, then run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.pylance._dataset.scanner import asks_for_blob_values
from lancelake.table.sql import Query, SqlRequest


class SqlQuery:
    """A query of one version, ready to run."""

    def __init__(self, snapshot: Snapshot, request: SqlRequest) -> None:
        self._snapshot = snapshot
        self._request = request

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Return the whole result, without empty batches."""
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Return the result as a stream."""
        return Query(self._snapshot, self._request).run()

    def explain_plan(self) -> str:
        """Describe how the query is run."""
        return Query(self._snapshot, self._request).explain()


class SqlQueryBuilder:
    """Collects what a query can see of the table."""

    def __init__(self, snapshot: Snapshot, sql: str) -> None:
        self._snapshot = snapshot
        self._request = SqlRequest(text=sql)

    def _with(self, **changes: Any) -> SqlQueryBuilder:
        self._request = replace(self._request, **changes)
        return self

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Name the table as the query does; `dataset` otherwise."""
        return self._with(table_name=table_name)

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Give the table the column `_rowid`."""
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Give the table the column `_rowaddr`."""
        return self._with(with_row_address=with_row_addr)

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """Show blobs as bytes (`all_binary`), or say where they lie (any other way)."""
        return self._with(blob_values=asks_for_blob_values(blob_handling))

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Rows per batch, at most."""
        return self._with(batch_size=batch_size)

    def build(self) -> SqlQuery:
        """Return the query; it is checked when it is run."""
        return SqlQuery(self._snapshot, self._request)
