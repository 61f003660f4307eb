"""Groups of scan tasks: adjacent small fragments are read together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import TypeVar

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.joined_fragments import (
    FEWEST_JOINED,
    MOST_JOINED,
    has_movable_columns,
    is_small,
)
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.scan import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.row_source import JoinedRows, joined_rows
from lancelake.scan.scan_columns import ScanColumns

# A group with more rows would give the threads of a scan too little to do in parallel.
_GROUP_ROWS = 1 << 16

Group = tuple[ScanTask, ...]
"""Tasks of one scan, in order; those of a group of several can be read together."""

Result = TypeVar("Result")


def grouped(tasks: Sequence[ScanTask]) -> Iterator[Group]:
    """Group the tasks of adjacent small fragments, if there are many; others are on their own."""
    if len(tasks) < FEWEST_JOINED or not has_movable_columns(tasks[0].spec.table_schema):
        yield from ((task,) for task in tasks)
        return
    for likeness, run in groupby(tasks, _likeness):
        if likeness is None:
            yield from ((task,) for task in run)
            continue
        for part in packed(run, _physical_rows, most_rows=_GROUP_ROWS, most_tasks=MOST_JOINED):
            yield from (part,) if len(part) >= FEWEST_JOINED else ((task,) for task in part)


def execute_group(group: Group, columns: ScanColumns) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the tasks in order."""
    done = 0
    if len(group) > 1:
        with joined_rows(group[0].spec, _fragments(group)) as source:
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
        with joined_rows(group[0].spec, _fragments(group)) as source:
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


def packed(
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
