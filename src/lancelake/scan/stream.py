"""Stream of batches of a plan: grouped, prefetched, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TypeVar

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import rebatched, retype_batch
from lancelake.data.joined_fragments import (
    FEWEST_JOINED,
    MOST_JOINED,
    has_movable_columns,
    is_small,
)
from lancelake.errors import CorruptTableError
from lancelake.expr.predicate import Filter
from lancelake.expr.stream_query import stream_query
from lancelake.format.fragment import Fragment
from lancelake.format.schema import quoted_name
from lancelake.scan import execute
from lancelake.scan.index_search.search import count_in_range
from lancelake.scan.live_rows import live_rows
from lancelake.scan.plan import ScanMeasure, ScanPlan, ScanTask
from lancelake.scan.planner import is_long, parse_filter
from lancelake.scan.request import DEFAULT_BATCH_ROWS, ExpressionOutput, Ordering
from lancelake.scan.task_rows import JoinedRows, ScanColumns, join_rows
from lancelake.threads import Ahead, OwnStream, Pool, aside, streamed

# A group with more rows would give the threads of a scan too little to do in parallel.
_GROUP_ROWS = 1 << 16

Group = tuple[ScanTask, ...]
"""Tasks of one scan, in order; those of a group of several can be read together."""

Result = TypeVar("Result")


def group_tasks(tasks: Sequence[ScanTask]) -> Iterator[Group]:
    """Group the tasks of adjacent small fragments, if there are many; others are on their own."""
    if len(tasks) < FEWEST_JOINED or not has_movable_columns(tasks[0].spec.table_schema):
        yield from ((task,) for task in tasks)
        return
    for likeness, run in groupby(tasks, _likeness):
        if likeness is None:
            yield from ((task,) for task in run)
            continue
        for part in pack_tasks(run, _physical_rows, most_rows=_GROUP_ROWS, most_tasks=MOST_JOINED):
            yield from (part,) if len(part) >= FEWEST_JOINED else ((task,) for task in part)


def execute_group(group: Group, columns: ScanColumns) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the tasks in order."""
    done = 0
    if len(group) > 1:
        with join_rows(group[0].spec, _fragments(group)) as source:
            if source is not None:
                try:
                    for batch in execute.execute(group[0], columns, source):
                        yield batch
                        done += batch.num_rows
                except CorruptTableError:
                    # Reading the fragments one by one finds the one with the defect.
                    pass
                else:
                    return
    yield from _after(done, chain.from_iterable(execute.execute(task, columns) for task in group))


def count_group(group: Group, columns: ScanColumns) -> int:
    """Count the rows of the tasks that their predicate keeps."""
    return _together(
        group,
        lambda source: execute.count(group[0], columns, source),
        lambda: sum(execute.count(task, columns) for task in group),
    )


def kept_offsets_of(group: Group, columns: ScanColumns) -> list[BitMap]:
    """Return the offsets of the rows that the predicate keeps, for each task."""
    return _together(
        group,
        lambda source: source.split(execute.kept_offsets(group[0], columns, source)),
        lambda: [execute.kept_offsets(task, columns) for task in group],
    )


def _together(
    group: Group, joined: Callable[[JoinedRows], Result], one_by_one: Callable[[], Result]
) -> Result:
    if len(group) > 1:
        with join_rows(group[0].spec, _fragments(group)) as source:
            if source is not None:
                try:
                    return joined(source)
                except CorruptTableError:
                    # Reading the fragments one by one finds the one with the defect.
                    pass
    return one_by_one()


def _fragments(group: Group) -> list[Fragment]:
    return [task.fragment for task in group]


def _after(skip: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if skip < batch.num_rows:
            yield batch.slice(skip)
        skip = max(0, skip - batch.num_rows)


def _likeness(task: ScanTask) -> object:
    """Return what tasks that can be read together have in common; None if that is impossible."""
    fragment = task.fragment
    reads_part = task.start or task.stop is not None or task.rows is not None
    if reads_part or task.row_limit is not None or task.live_before or len(fragment.files) != 1:
        return None
    if not fragment.physical_rows or not is_small(fragment):
        return None
    (file,) = fragment.files
    if not file.version.leaves_only:
        return None
    return file.fields, file.column_indices, file.file_major_version, file.file_minor_version


def pack_tasks(
    tasks: Iterable[ScanTask],
    rows_of: Callable[[ScanTask], int],
    *,
    most_rows: int,
    most_tasks: int,
) -> Iterator[Group]:
    """Divide tasks, in order, into groups of bounded size; a larger task is a group of its own."""
    group: list[ScanTask] = []
    rows = 0
    for task in tasks:
        size = rows_of(task)
        if group and (rows + size > most_rows or len(group) == most_tasks):
            yield tuple(group)
            group, rows = [], 0
        group.append(task)
        rows += size
    if group:
        yield tuple(group)


def _physical_rows(task: ScanTask) -> int:
    return task.fragment.physical_rows or 0


Stream = Callable[[], Iterator[pa.RecordBatch]]


def in_order(streams: Iterable[Stream], at_once: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all streams in order, prefetching some of them."""
    waiting = iter(streams)
    running: deque[Ahead[pa.RecordBatch]] = deque()
    try:
        while True:
            while len(running) < max(1, at_once) and (stream := next(waiting, None)) is not None:
                running.append(Ahead(stream))
            if not running:
                return
            yield from running[0]
            running.popleft()
    finally:
        for ahead in running:
            ahead.stop()


def order_rows(plan: ScanPlan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in the order of the plan, up to its limit."""
    if plan.limit == 0:
        return
    limit = "" if plan.limit is None else f" LIMIT {plan.limit}"
    offset = f" OFFSET {plan.skip}" if plan.skip else ""
    query = _query(plan.schema, plan.order_by) + limit + offset
    rows = plan.spec.row_schema
    for batch in stream_query(query, rows, batches, batch_rows=DEFAULT_BATCH_ROWS):
        yield retype_batch(batch, plan.schema)


def sort_batches(
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


def run(plan: ScanPlan, measure: ScanMeasure | None = None) -> pa.RecordBatchReader:
    """Stream the rows of a plan."""
    rows = _in_order(plan)
    if measure is not None:
        rows = measure.scanned(rows)
    batches = order_rows(plan, rows) if plan.order_by else _slice(rows, plan.skip, plan.limit)
    if plan.strict_batch_size:
        batches = rebatched(batches, plan.spec.batch_rows or DEFAULT_BATCH_ROWS)
    if measure is not None:
        batches = measure.returned(batches)
    return pa.RecordBatchReader.from_batches(plan.schema, OwnStream(batches, "a scan"))


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


def count_by_index(snapshot: Snapshot, filter: Filter) -> int | None:
    """Count the rows of a version that match, from an index alone; None if that is not possible."""
    if is_long(filter):  # more than a range, and its parsing may take most of the time
        return None
    condition = parse_filter(filter, snapshot.manifest.schema).condition
    return count_in_range(snapshot, condition)


def _count_kept(plan: ScanPlan) -> int:
    return aside(_count_groups, plan)


def _count_groups(plan: ScanPlan) -> int:
    columns = ScanColumns.of(plan.spec)
    listed = [task for task in plan.tasks if task.rows is not None and not task.recheck]
    total = sum(count_group((task,), columns) for task in listed)
    groups = list(group_tasks([t for t in plan.tasks if t.rows is None or t.recheck]))
    if len(groups) <= 1 and not _evaluates(plan):
        return total + sum(count_group(group, columns) for group in groups)
    with Pool(plan.fragment_readahead) as pool:
        return total + sum(pool.map(lambda group: count_group(group, columns), groups))


def _in_order(plan: ScanPlan) -> Iterator[pa.RecordBatch]:
    groups = group_tasks(plan.tasks)
    columns = ScanColumns.of(plan.spec)
    if (len(plan.tasks) <= 1 or plan.fragment_readahead <= 1) and not _evaluates(plan):
        yield from streamed(
            lambda: chain.from_iterable(execute_group(group, columns) for group in groups)
        )
        return
    streams = (partial(execute_group, group, columns) for group in groups)
    yield from in_order(streams, plan.fragment_readahead)


def _evaluates(plan: ScanPlan) -> bool:
    """Whether SQL is evaluated, which must not happen on a thread of DataFusion."""
    computed = any(isinstance(output, ExpressionOutput) for output in plan.spec.outputs)
    predicate = plan.spec.predicate
    return computed or (predicate is not None and predicate.needs_datafusion)


def _slice(
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
        rows = batch.slice(skip, left)
        skip = 0
        yield rows
        if left is not None:
            left -= rows.num_rows
            if left == 0:
                return
