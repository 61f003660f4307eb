"""Running of a scan plan: its rows in order, or their count."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.arrays.rebatch import rebatched
from lancelake.expr.predicate import Filter
from lancelake.process import ContextThreadPool, within_process
from lancelake.scan.count import live_rows
from lancelake.scan.groups import count_group, execute_group, grouped
from lancelake.scan.index_search.range_count import count_in_range
from lancelake.scan.measure import ScanMeasure
from lancelake.scan.order import ordered
from lancelake.scan.outputs import ExpressionOutput
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import is_long, parsed_filter
from lancelake.scan.prefetch import in_order
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.scan.scan_columns import ScanColumns


def run(plan: ScanPlan, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
    """Stream the rows of a plan."""
    rows = _in_order(plan)
    if measure is not None:
        rows = measure.scanned(rows)
    batches = ordered(plan, rows) if plan.order_by else _sliced(rows, plan.skip, plan.limit)
    if plan.strict_batch_size:
        batches = rebatched(batches, plan.spec.batch_rows or DEFAULT_BATCH_ROWS)
    if measure is not None:
        batches = measure.returned(batches)
    return pa.RecordBatchReader.from_batches(plan.schema, within_process(batches, "a scan"))


def count(plan: ScanPlan) -> int:
    """Count the rows of a plan, reading no more than its predicate needs."""
    spec = plan.spec
    takes_all = all(task.rows is None for task in plan.tasks)
    if spec.predicate is None and not spec.include_deleted_rows and takes_all:
        places = spec.files, spec.manifest_at
        total = sum(live_rows(*places, task.fragment) for task in plan.tasks)
    else:
        total = _count_kept(plan)
    left = max(0, total - plan.skip)
    return left if plan.limit is None else min(left, plan.limit)


@names_table
def count_by_index(snapshot: Snapshot, filter: Filter) -> int | None:
    """Count the rows of a version that match, from an index alone; None if that is not possible."""
    if is_long(filter):  # more than a range, and its parsing may take most of the time
        return None
    condition = parsed_filter(filter, snapshot.manifest.schema).condition
    return count_in_range(snapshot, condition)


def _count_kept(plan: ScanPlan) -> int:
    columns = ScanColumns.of(plan.spec)
    known = [task for task in plan.tasks if task.rows is not None and not task.recheck]
    total = sum(count_group((task,), columns) for task in known)
    groups = list(grouped([t for t in plan.tasks if t.rows is None or t.recheck]))
    if len(groups) <= 1 and not _evaluates(plan):
        return total + sum(count_group(group, columns) for group in groups)
    with ContextThreadPool(plan.fragment_readahead) as pool:
        return total + sum(pool.map(lambda group: count_group(group, columns), groups))


def _in_order(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    groups = grouped(plan.tasks)
    columns = ScanColumns.of(plan.spec)
    if (len(plan.tasks) <= 1 or plan.fragment_readahead <= 1) and not _evaluates(plan):
        for group in groups:
            yield from execute_group(group, columns)
        return
    streams = (partial(execute_group, group, columns) for group in groups)
    yield from in_order(streams, plan.fragment_readahead)


def _evaluates(plan: ScanPlan) -> bool:
    """Whether SQL is evaluated, which must not happen on a thread of DataFusion."""
    computed = any(isinstance(output, ExpressionOutput) for output in plan.spec.outputs)
    predicate = plan.spec.predicate
    return computed or (predicate is not None and predicate.needs_datafusion)


def _sliced(
    batches: Iterator[pa.RecordBatch], skip: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Drop the first rows, and all after `limit` more."""
    if limit == 0:
        return
    left = limit
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        kept = batch.slice(skip, left)
        skip = 0
        yield kept
        if left is not None:
            left -= kept.num_rows
            if left == 0:
                return
