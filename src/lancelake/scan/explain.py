"""Text of a plan, and what running it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from typing import TypeVar, assert_never, cast

import pyarrow as pa

from lancelake.clock import Clock
from lancelake.data.codec.read_sizes import ReadSize, bytes_read
from lancelake.expr.condition import (
    And,
    Comparison,
    Condition,
    Membership,
    Not,
    Or,
    TextMatch,
    TextTest,
    Truth,
)
from lancelake.expr.predicate import condition_sql
from lancelake.format.frozen import computed_once
from lancelake.format.schema import join_path
from lancelake.scan.index_search.search import AskedIndex
from lancelake.scan.plan import ScanPlan, ScanTask
from lancelake.scan.request import ColumnOutput, ExpressionOutput, MetaOutput, Ordering
from lancelake.storage.instrumented import IoAccount
from lancelake.storage.session import default_session

_T = TypeVar("_T")
_Found = TypeVar("_Found", bound=Sized)


@dataclass(slots=True)
class StepCounts:
    """Batches that a step returned, and the time that it took with the steps below it."""

    rows: int = 0
    size_bytes: int = 0
    batches: int = 0
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        """Format as metrics of a plan."""
        return (
            f"rows={self.rows}, bytes={self.size_bytes}, batches={self.batches}, "
            f"elapsed_ms={self.elapsed_s * 1000:.3f}"
        )


@dataclass(frozen=True)
class StepIo:
    """I/O of a step."""

    account: IoAccount = field(default_factory=IoAccount)

    @computed_once
    def size(self) -> ReadSize:
        """Bytes read; the first call opens the files that were read once more."""
        return bytes_read(self.account)

    def __str__(self) -> str:
        """Format as metrics of a plan."""
        account = self.account
        return (
            f"rows_scanned={account.rows_read}, bytes_read={self.size}, iops={account.requests}, "
            f"requests={account.requests}, store_requests={account.store_requests}"
        )


class ScanMeasure:
    """Counts of one scan: give it the steps to run, then read the counts."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Start with all counts at zero."""
        self._clock = clock or default_session().clock
        self.planning = StepCounts()
        self.planning_io = StepIo()
        self.scan = StepCounts()
        self.scan_io = StepIo()
        self.output = StepCounts()
        self.is_count = False

    def another_run(self) -> ScanMeasure:
        """Return the counts of planning, for another run of the same plan."""
        other = ScanMeasure(self._clock)
        other.planning, other.planning_io = self.planning, self.planning_io
        return other

    def planned(self, make: Callable[[], _T]) -> _T:
        """Plan a scan; indices are searched as part of it."""
        started = self._clock.monotonic_s()
        with self.planning_io.account.active():
            plan = make()
        self.planning.elapsed_s += self._clock.monotonic_s() - started
        return plan

    def scanned(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the scan step."""
        return self._count(batches, self.scan, self.scan_io.account)

    def searched(self, find: Callable[[], _Found]) -> _Found:
        """Search for rows, as the scan step."""
        started = self._clock.monotonic_s()
        with self.scan_io.account.active():
            rows = find()
        self.scan.elapsed_s += self._clock.monotonic_s() - started
        self.scan.rows += len(rows)
        return rows

    def returned(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the last step."""
        return self._count(batches, self.output, None)

    def counted(self, count: Callable[[], int]) -> int:
        """Count the rows of a scan."""
        started = self._clock.monotonic_s()
        with self.scan_io.account.active():
            rows = count()
        self.is_count = True
        for step in (self.scan, self.output):
            step.elapsed_s += self._clock.monotonic_s() - started
            step.rows += rows
        return rows

    def _count(
        self, batches: Iterator[pa.RecordBatch], step: StepCounts, account: IoAccount | None
    ) -> Iterator[pa.RecordBatch]:
        while True:
            started = self._clock.monotonic_s()
            batch = _next(batches, account)
            step.elapsed_s += self._clock.monotonic_s() - started
            if batch is None:
                return
            step.rows += batch.num_rows
            step.size_bytes += batch.nbytes
            step.batches += 1
            yield batch


def _next(batches: Iterator[pa.RecordBatch], account: IoAccount | None) -> pa.RecordBatch | None:
    if account is None:
        return next(batches, None)
    with account.active():
        return next(batches, None)


_MOST_VALUES = 20
_COUNT = "CountFromMask"


def explain(
    plan: ScanPlan,
    *,
    verbose: bool = False,
    measure: ScanMeasure | None = None,
    read: str = "LanceRead",
) -> str:
    """Describe the steps of a scan, the last one first; with the counts of a run, if given.

    `read` is the name of the step that reads the fragments. Rows that were counted, and that
    indices know, were not read.
    """
    is_count = measure is not None and measure.is_count
    by_index = _exact_rows(plan) if is_count else None
    if by_index is not None and all(map(_is_known, plan.tasks)):
        read = _COUNT
    output = "" if measure is None else f", metrics=[{measure.output}]"
    steps = [f"Output: {', '.join(plan.schema.names) or '(no columns)'}{output}"]
    if plan.order_by:
        steps.append(sort_step(plan.order_by))
    if plan.skip or plan.limit is not None:
        steps.append(f"Limit: skip={plan.skip}, fetch={plan.limit}")
    computed = [o for o in plan.spec.outputs if isinstance(o, ExpressionOutput)]
    steps += [f"Compute: {o.name} = {o.expression.text}" for o in computed]
    early, late = list(dict.fromkeys(_paths(plan))), []
    if plan.spec.predicate is not None:
        if plan.spec.late:
            tested = set(map(join_path, plan.spec.predicate.paths))
            early, late = [p for p in early if p in tested], [p for p in early if p not in tested]
        if late:
            steps.append(f"{read}: projection=[{', '.join(late)}], source=stream")
        steps.append(f"Filter: {plan.spec.predicate.text}")
    count = "" if measure is None else f", {measured_scan(measure)}"
    projection = ", ".join(early)
    steps.append(
        f"{read}: uri={plan.spec.files.root.uri}, version={plan.spec.version}, "
        f"num_fragments={len(plan.tasks)}{_describe_skipped(plan)}, "
        f"projection=[{projection}]{count}"
    )
    lines = ["  " * depth + step for depth, step in enumerate(steps)]
    below = index_steps(plan)
    if by_index is not None and read != _COUNT:
        below.insert(0, f"{_COUNT}: rows={by_index}")
    if measure is not None:
        elapsed_ms = measure.planning.elapsed_s * 1000
        below.append(f"Planning: metrics=[{measure.planning_io}, elapsed_ms={elapsed_ms:.3f}]")
    if verbose:
        below += [f"fragment {task.fragment.id}" for task in plan.tasks]
    return "\n".join([*lines, *("  " * len(steps) + line for line in below)]) + "\n"


def sort_step(order_by: Sequence[Ordering]) -> str:
    """Describe a sort."""
    keys = ", ".join(f"{o.column} {'asc' if o.ascending else 'desc'}" for o in order_by)
    return f"Sort: {keys}"


def measured_scan(measure: ScanMeasure) -> str:
    """Format the counts of the scan step."""
    return f"output_rows={measure.scan.rows}, metrics=[{measure.scan_io}, {measure.scan}]"


def _describe_skipped(plan: ScanPlan) -> str:
    """Say how many fragments the indices let a scan skip, and what of the others is read."""
    search = plan.index_search
    if search is None:
        return ""
    listed = [task for task in plan.tasks if task.rows is not None]
    exact = _exact_rows(plan)
    checked = sum(len(task.rows or ()) for task in listed if task.recheck)
    return (
        f", fragments_skipped={len(search.empty)}"
        f", fragments_scanned={len(plan.tasks) - len(listed)}"
        f", rows_by_index={exact}, rows_to_check={checked}"
    )


def _exact_rows(plan: ScanPlan) -> int | None:
    """Return the number of rows that indices found exactly, None if none were asked."""
    if plan.index_search is None:
        return None
    return sum(len(task.rows or ()) for task in plan.tasks if _is_known(task))


def _is_known(task: ScanTask) -> bool:
    return task.rows is not None and not task.recheck


def index_steps(plan: ScanPlan) -> list[str]:
    """Describe what the indices were asked about the filter of a scan, and what they answered."""
    search = plan.index_search
    if search is None:
        return []
    unused = "" if search.is_helpful else ", used=false"
    return [_describe_question(each) + unused for each in search.asked]


def _describe_question(each: AskedIndex) -> str:
    rows = "rows_excluded" if each.are_excluded else "rows"
    place = f"{each.index}({each.kind})"
    return (
        f"ScalarIndexQuery: query={_question(each.condition, place)}, "
        f"{rows}={each.rows}, exact={str(each.is_exact).lower()}"
    )


def _paths(plan: ScanPlan) -> Iterator[str]:
    """Yield the stored columns that the plan reads."""
    for output in plan.spec.outputs:
        match output:
            case ColumnOutput(path=path):
                yield join_path(path)
            case ExpressionOutput(expression=expression):
                yield from map(join_path, expression.paths)
            case MetaOutput():
                pass
            case _:
                assert_never(output)
    if plan.spec.predicate is not None:
        yield from map(join_path, plan.spec.predicate.paths)


def _question(condition: Condition, place: str) -> str:
    """Return a condition with the index that is asked, like `[a >= 1 && a < 5]@a_idx(BTREE)`."""
    match condition:
        case Not():
            return f"NOT({_question(condition.part, place)})"
        case And() if all(isinstance(part, Comparison) for part in condition.parts):
            bounds = (_comparison(cast(Comparison, part)) for part in condition.parts)
            return f"[{' && '.join(bounds)}]@{place}"
        case And() | Or():
            word = "AND" if isinstance(condition, And) else "OR"
            return f"{word}({','.join(_question(part, place) for part in condition.parts)})"
        case _:
            return f"[{_leaf(condition)}]@{place}"


def _leaf(condition: Condition) -> str:
    match condition:
        case Comparison():
            return _comparison(condition)
        case Membership() if len(condition.values) == 1 and not condition.has_null:
            return f"{join_path(condition.column.path)} = {condition.values[0]}"
        case Truth():
            return f"{join_path(condition.column.path)} = true"
        case TextMatch() if condition.test is TextTest.CONTAINS:
            return f'contains({join_path(condition.column.path)}, Utf8("{condition.text}"))'
        case _:
            return condition_sql(condition, most_values=_MOST_VALUES)


def _comparison(leaf: Comparison) -> str:
    return f"{join_path(leaf.column.path)} {leaf.operator.value} {leaf.value}"
