"""Which rows does each Spark partition read? Small fragments are packed, large ones divided."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lancelake.data.projection import project
from lancelake.scan.finish import needed_paths
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.width import row_bytes

_MIN_SPLIT_ROWS = 65_536
# Opening one more file costs about as much as reading this many bytes.
_OPEN_BYTES = 4 << 20
# Every batch has a price on its way to the JVM; a large one falls out of the processor's cache.
_BATCH_BYTES = 8 << 20
_MOST_BATCH_ROWS = 1 << 16
_LEAST_BATCH_ROWS = 64
_SAMPLED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLimits:
    """How much one partition should read at most, and into how many cores' work to divide."""

    max_bytes: int = 128 << 20
    max_rows: int = 16_000_000
    cores: int = 1


@dataclass(frozen=True, slots=True)
class _Weighed:
    task: ScanTask
    rows: int
    row_bytes: float

    @property
    def cost(self) -> float:
        return self.rows * self.row_bytes + _OPEN_BYTES


def split(plan: ScanPlan, limits: SplitLimits) -> list[tuple[ScanTask, ...]]:
    """Group the tasks of a plan into partitions, in row order."""
    weighed = _weighed(plan, plan.tasks)
    total = sum(task.cost for task in weighed)
    most = min(limits.max_bytes, max(_OPEN_BYTES, total / limits.cores))
    most_rows = min(limits.max_rows, _rows_per_core(weighed, limits.cores))
    pieces = [piece for task in weighed for piece in _divided(task, most, most_rows)]
    return _packed(pieces, most, most_rows)


def estimated_bytes(plan: ScanPlan) -> int:
    """Estimate the bytes of the rows that a plan looks at."""
    return int(sum(task.rows * task.row_bytes for task in _weighed(plan, plan.tasks)))


def batch_rows(plan: ScanPlan) -> int:
    """Return how many rows to hand over at once: many, unless they are wide."""
    sample = _weighed(plan, plan.tasks[:_SAMPLED])
    width = max((task.row_bytes for task in sample), default=0.0)
    fitting = int(_BATCH_BYTES / width) if width else _MOST_BATCH_ROWS
    return max(_LEAST_BATCH_ROWS, min(_MOST_BATCH_ROWS, fitting))


def _rows_per_core(tasks: Sequence[_Weighed], cores: int) -> int:
    """Narrow rows cost the same to hand over as wide ones, so that every core should get some."""
    rows = sum(task.rows for task in tasks)
    return max(_MIN_SPLIT_ROWS, -(-rows // cores))


def _weighed(plan: ScanPlan, tasks: Sequence[ScanTask]) -> list[_Weighed]:
    spec = plan.spec
    paths = needed_paths(spec.outputs)
    paths += () if spec.predicate is None else spec.predicate.paths
    wanted = project(spec.table_schema, paths)
    found: list[_Weighed] = []
    for task in tasks:
        rows = task.fragment.physical_rows or 0
        if task.row_limit is not None and spec.predicate is None:
            rows = min(rows, task.row_limit)
        found.append(_Weighed(task, rows, row_bytes(task.fragment, spec.widths, wanted)))
    return found


def _divided(weighed: _Weighed, most_bytes: float, most_rows: int) -> Iterable[_Weighed]:
    """Cut a task into equal ranges of rows when it is too large."""
    task, rows = weighed.task, weighed.rows
    known = task.fragment.physical_rows
    count = max(-(-int(rows * weighed.row_bytes) // max(1, int(most_bytes))), -(-rows // most_rows))
    count = min(count, rows // _MIN_SPLIT_ROWS)
    if count <= 1 or known is None or task.row_limit is not None:
        return [weighed]
    bounds = [known * i // count for i in range(count + 1)]
    return [
        _Weighed(replace(task, start=start, stop=stop), stop - start, weighed.row_bytes)
        for start, stop in itertools.pairwise(bounds)
    ]


def _packed(pieces: Sequence[_Weighed], most: float, most_rows: int) -> list[tuple[ScanTask, ...]]:
    partitions: list[tuple[ScanTask, ...]] = []
    held: list[ScanTask] = []
    cost, rows = 0.0, 0
    for piece in pieces:
        if held and (cost + piece.cost > most + _OPEN_BYTES or rows + piece.rows > most_rows):
            partitions.append(tuple(held))
            held, cost, rows = [], 0.0, 0
        held.append(piece.task)
        cost += piece.cost
        rows += piece.rows
    if held:
        partitions.append(tuple(held))
    return partitions
