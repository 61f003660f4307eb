"""Sorting a stream of batches within bounded memory, by DataFusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancelake.data.arrays.retype import retype_batch
from lancelake.expr.stream_query import stream_query
from lancelake.format.column_path import quoted_name
from lancelake.scan.plan import ScanPlan
from lancelake.scan.request import DEFAULT_BATCH_ROWS, Ordering


def ordered(plan: ScanPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in the order of the plan, up to its limit."""
    if plan.limit == 0:
        return
    limit = "" if plan.limit is None else f" LIMIT {plan.limit}"
    offset = f" OFFSET {plan.skip}" if plan.skip else ""
    query = _query(plan.schema, plan.order_by) + limit + offset
    rows = plan.spec.row_schema
    for batch in stream_query(query, rows, batches, batch_rows=DEFAULT_BATCH_ROWS):
        yield retype_batch(batch, plan.schema)


def sorted_batches(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    order_by: Sequence[Ordering],
    *,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Yield all rows in this order; rows that do not fit into memory are spilled to disk.

    A few batches of each spilled part are in memory at a time, so wide rows need small ones.
    """
    query = _query(schema, order_by)
    for batch in stream_query(query, schema, batches, batch_rows=batch_rows):
        yield retype_batch(batch, schema)


def _query(schema: pa.Schema, order_by: Sequence[Ordering]) -> str:
    keys = ", ".join(
        f"{quoted_name(o.column)} {'ASC' if o.ascending else 'DESC'} "
        f"NULLS {'FIRST' if o.nulls_first else 'LAST'}"
        for o in order_by
    )
    columns = ", ".join(quoted_name(name) for name in schema.names)
    return f"SELECT {columns} FROM rows ORDER BY {keys}"
