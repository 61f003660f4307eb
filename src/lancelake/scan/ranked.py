"""Rows of a search in the order of their rank, with a column that the search computed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lancelake.format import roaring
from lancelake.format.row_address import fragment_of, offset_of
from lancelake.format.rowids.segment import U64Array
from lancelake.scan.execute import fetch
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.ranking import RankedRows
from lancelake.scan.request import DEFAULT_BATCH_ROWS


def ranked_batches(plan: ScanPlan, ranked: RankedRows) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a plan in the order of their rank."""
    tasks: dict[int, ScanTask] = {task.fragment.id: task for task in plan.tasks}
    step = plan.spec.batch_rows or DEFAULT_BATCH_ROWS
    for start in range(0, len(ranked.addresses), step):
        addresses = ranked.addresses[start : start + step]
        columns = [] if not plan.spec.outputs else _fetched(tasks, addresses, plan).columns
        if ranked.place is not None:
            columns.insert(ranked.place, ranked.values.slice(start, step))
        yield _batch(columns, plan.schema, len(addresses))


def _batch(columns: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    empty = pa.StructArray.from_buffers(pa.struct([]), rows, [None])
    return pa.RecordBatch.from_struct_array(empty)


def _fetched(tasks: dict[int, ScanTask], addresses: U64Array, plan: ScanPlan) -> pa.RecordBatch:
    """Return rows at some addresses, in their order."""
    unique, inverse = np.unique(addresses, return_inverse=True)
    numbers, starts = np.unique(fragment_of(unique), return_index=True)
    parts = np.split(offset_of(unique), starts[1:])
    batches = [
        fetch(tasks[number].matching(roaring.of(offsets.astype(np.uint32))))
        for number, offsets in zip(numbers.tolist(), parts, strict=True)
    ]
    table = pa.Table.from_batches(batches, schema=plan.spec.row_schema)
    (whole,) = table.take(pa.array(inverse)).combine_chunks().to_batches()
    return whole
