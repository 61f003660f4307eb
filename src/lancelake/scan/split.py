"""Splitting of a scan into partitions: small fragments are packed, large ones divided."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import TypeVar

from pyroaring import FrozenBitMap

from lancelake.data.column_reader import project
from lancelake.format.fragment import Fragment
from lancelake.scan.plan import ScanPlan, ScanTask, row_bytes, stored_bytes
from lancelake.scan.task_rows import needed_paths

Item = TypeVar("Item")

_MIN_SPLIT_ROWS = 65_536
_SLACK = 0.1
# Opening one more file costs about as much as reading this many bytes.
_OPEN_BYTES = 4 << 20
# Every batch sent to the JVM has a fixed cost; a large one does not fit into the CPU cache.
_BATCH_BYTES = 8 << 20
_MOST_BATCH_ROWS = 1 << 16
_LEAST_BATCH_ROWS = 64
_SAMPLED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLimits:
    """Maximum size of a partition, and the number of cores to divide the work for.

    With `whole_fragments`, all rows of a fragment are read by one partition.
    """

    max_bytes: int = 128 << 20
    max_rows: int = 16_000_000
    cores: int = 1
    whole_fragments: bool = False


@dataclass(frozen=True, slots=True)
class _Weighed:
    task: ScanTask
    rows: int
    row_bytes: float
    open_bytes: float = _OPEN_BYTES

    @property
    def cost(self) -> float:
        # Even the narrowest row has a cost.
        return self.rows * max(self.row_bytes, 1.0) + self.open_bytes

    def cut(self, rows: int) -> tuple[_Weighed, _Weighed] | None:
        """Return the rows per part; None when parts would be too small or sizes are unknown."""
        task, end = self.task, self.task.stop or self.task.fragment.physical_rows
        if min(rows, self.rows - rows) < _MIN_SPLIT_ROWS or end is None:
            return None
        if task.row_limit is not None:
            return None
        if task.rows is None:
            middle = task.start + rows
            first, second = replace(task, stop=middle), replace(task, start=middle, stop=end)
        else:
            first = replace(task, rows=FrozenBitMap(task.rows[:rows]))
            second = replace(task, rows=FrozenBitMap(task.rows[rows:]))
        share = self.open_bytes * rows / self.rows
        return (
            _Weighed(first, rows, self.row_bytes, share),
            _Weighed(second, self.rows - rows, self.row_bytes, self.open_bytes - share),
        )


def split(plan: ScanPlan, limits: SplitLimits) -> list[tuple[ScanTask, ...]]:
    """Group the tasks of a plan into partitions of about the same cost, in row order."""
    weighed = _weigh(plan, plan.tasks)
    total = sum(task.cost for task in weighed)
    rows = sum(task.rows for task in weighed)
    return list(_fill(weighed, _quota(total, rows, limits), limits))


def pack(
    items: Sequence[Item], fragment_of: Callable[[Item], Fragment], limits: SplitLimits
) -> Iterator[tuple[Item, ...]]:
    """Group items that each read a fragment, in their order; as `split`, but none is divided."""
    rows = [fragment_of(item).physical_rows or 0 for item in items]
    sizes = [sum(f.file_size_bytes or 0 for f in fragment_of(item).files) for item in items]
    costs = [max(size, count) + _OPEN_BYTES for size, count in zip(sizes, rows, strict=True)]
    room = quota = _quota(sum(costs), sum(rows), limits)
    pending: list[Item] = []
    for item, cost in zip(items, costs, strict=True):
        if pending and cost / 2 > room:
            yield tuple(pending)
            pending, room = [], quota
        pending.append(item)
        room -= cost
    if pending:
        yield tuple(pending)


def _quota(cost: float, rows: int, limits: SplitLimits) -> float:
    """Return the cost of one partition."""
    worth = max(1, int(cost // _OPEN_BYTES), rows // _MIN_SPLIT_ROWS)
    count = max(
        math.ceil(cost / limits.max_bytes),
        math.ceil(rows / limits.max_rows),
        min(limits.cores, worth),
    )
    if count > limits.cores:
        # As many as run at the same time, or all cores but some wait for the last ones.
        count = math.ceil(count / limits.cores) * limits.cores
    return cost / count


def _fill(
    tasks: Sequence[_Weighed], quota: float, limits: SplitLimits
) -> Iterator[tuple[ScanTask, ...]]:
    """Fill partitions up to a cost; divide a task that exceeds it if possible."""
    pending: list[ScanTask] = []
    room = quota
    for task in tasks:
        rest = task
        while not limits.whole_fragments and rest.cost > room + quota * _SLACK:
            parts = rest.cut(int(rest.rows * room / rest.cost))
            if parts is None:
                break
            yield (*pending, parts[0].task)
            pending, room, rest = [], quota, parts[1]
        if pending and rest.cost / 2 > room:
            yield tuple(pending)
            pending, room = [], quota
        pending.append(rest.task)
        room -= rest.cost
    if pending:
        yield tuple(pending)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSize:
    """Number of rows that a plan reads, and bytes of its output columns in the files."""

    rows: int
    bytes: float


def plan_size(plan: ScanPlan) -> PlanSize:
    """Estimate the output size of a plan whose predicate is true for every row."""
    spec = plan.spec
    wanted = project(spec.table_schema, needed_paths(spec.outputs))
    rows = [_most_rows(plan, task) for task in plan.tasks]
    widths = [stored_bytes(task.fragment, spec.widths, wanted) for task in plan.tasks]
    return PlanSize(rows=sum(rows), bytes=sum(map(mul, rows, widths)))


def batch_rows(plan: ScanPlan) -> int:
    """Return the rows per batch: many, unless they are wide."""
    sample = _weigh(plan, plan.tasks[:_SAMPLED])
    width = max((task.row_bytes for task in sample), default=0.0)
    fitting = int(_BATCH_BYTES / width) if width else _MOST_BATCH_ROWS
    return max(_LEAST_BATCH_ROWS, min(_MOST_BATCH_ROWS, fitting))


def _weigh(plan: ScanPlan, tasks: Sequence[ScanTask]) -> list[_Weighed]:
    spec = plan.spec
    paths = needed_paths(spec.outputs)
    if spec.predicate is not None:
        paths += spec.predicate.paths
    wanted = project(spec.table_schema, paths)
    return [
        _Weighed(task, _most_rows(plan, task), row_bytes(task.fragment, spec.widths, wanted))
        for task in tasks
    ]


def _most_rows(plan: ScanPlan, task: ScanTask) -> int:
    rows = task.most_rows or 0
    is_limited = task.row_limit is not None and plan.spec.predicate is None
    return min(rows, task.row_limit or 0) if is_limited else rows
