"""Plan of a scan: frozen tasks, and the width of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import TypeVar, assert_never, cast

import pyarrow as pa
from pyroaring import AbstractBitMap, FrozenBitMap

from lancelake.caches import cached_by_identity
from lancelake.clock import Clock
from lancelake.data.codec.read_sizes import ReadSize, bytes_read
from lancelake.data.column_reader import columns_of
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
from lancelake.expr.predicate import Predicate, condition_sql
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.frozen import FrozenMap, computed_once
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import described
from lancelake.format.schema import Field, Schema, join_path
from lancelake.scan.index_search.search import AskedIndex, IndexSearch
from lancelake.scan.request import ColumnOutput, ExpressionOutput, MetaOutput, Ordering, Output
from lancelake.storage.instrumented import IoAccount
from lancelake.storage.location import default_session
from lancelake.storage.table_files import FileAt, TableFiles

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


_UNKNOWN_VALUE_BYTES = 64.0
_LEAST_UNKNOWN_BYTES = 20.0
_SCHEMAS = 64

Widths = FrozenMap[FieldId, float | None]


@cached_by_identity(_SCHEMAS)
def column_widths(schema: Schema) -> Widths:
    """Return the bytes per row of each column, None where rows differ."""
    pairs = (pair for field in schema.fields for pair in _widths(field, repeated=False))
    return FrozenMap(dict(pairs))


def row_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row of the wanted columns.

    Fixed-width columns are known; the rest of a file's size is spread over its other columns.
    """
    return sum(value_bytes(fragment, widths, wanted))


def value_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> list[float]:
    """Estimate the bytes per row of each of the wanted columns that the fragment stores."""
    columns = {i for field in wanted.fields for i in columns_of(field)}
    values: list[float] = []
    for file in fragment.files:
        in_file = [i for i in file.fields if i in widths]
        per_value = _bytes_per_value(fragment, file, widths, in_file)
        for i in columns.intersection(in_file):
            width = widths[i]
            values.append(per_value if width is None else width)
    return values


def stored_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row that the wanted columns take in the fragment's files.

    If a file is smaller than its values, it is compressed: its size is divided in the ratio of the
    widths of its columns.
    """
    columns = {i for field in wanted.fields for i in columns_of(field)}
    total = 0.0
    for file in fragment.files:
        in_file = [i for i in file.fields if i in widths]
        # In a compressed file nothing may be left for columns of unknown width.
        unknown = max(_bytes_per_value(fragment, file, widths, in_file), _LEAST_UNKNOWN_BYTES)
        widths_of = {i: unknown if (width := widths[i]) is None else width for i in in_file}
        rows, size, whole = fragment.physical_rows, file.file_size_bytes, sum(widths_of.values())
        stored = min(1.0, size / rows / whole) if rows and size and whole else 1.0
        total += stored * sum(widths_of[i] for i in columns.intersection(in_file))
    return total


def _bytes_per_value(
    fragment: Fragment, file: DataFile, widths: Widths, in_file: Sequence[FieldId]
) -> float:
    """Spread what fixed-width columns leave of a file's size over its other columns."""
    fixed = sum(widths[i] or 0.0 for i in in_file)
    unknown = sum(1 for i in in_file if widths[i] is None)
    rows, size = fragment.physical_rows or 0, file.file_size_bytes or 0
    spare = size / rows - fixed if size and rows else _UNKNOWN_VALUE_BYTES * unknown
    return max(spare, 0.0) / unknown if unknown else 0.0


def _widths(field: Field, *, repeated: bool) -> Iterator[tuple[FieldId, float | None]]:
    if field.owns_column:
        yield field.id, None if repeated else _type_width(storage_field(described(field)).type)
        return
    below = repeated or field.logical_type != "struct"
    for child in field.children:
        yield from _widths(child, repeated=below)


def _type_width(dtype: pa.DataType) -> float | None:
    if pa.types.is_null(dtype):
        return 0.0
    if pa.types.is_struct(dtype):
        parts = [_type_width(dtype.field(i).type) for i in range(dtype.num_fields)]
        return None if None in parts else sum(p or 0.0 for p in parts)
    if pa.types.is_fixed_size_list(dtype):
        inner = _type_width(dtype.value_type)
        return None if inner is None else inner * dtype.list_size
    if pa.types.is_dictionary(dtype):
        return _type_width(dtype.index_type)
    try:
        return float(dtype.bit_width) / 8
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanSpec:
    """Specification that all tasks of a scan share."""

    files: TableFiles
    manifest_at: FileAt
    version: int
    table_schema: Schema
    widths: Widths
    outputs: tuple[Output, ...]
    output_schema: pa.Schema
    predicate: Predicate | None
    late: bool | None
    batch_rows: int | None
    batch_readahead: int | None
    has_stable_row_ids: bool
    include_deleted_rows: bool
    remembers_small: bool = False
    valued_schema: pa.Schema | None = None
    """Schema of rows with blob values, if those are requested."""

    @property
    def row_schema(self) -> pa.Schema:
        """Schema of the rows that tasks yield."""
        return self.output_schema if self.valued_schema is None else self.valued_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Some rows of one fragment."""

    spec: ScanSpec
    fragment: Fragment
    start: int = 0
    stop: int | None = None
    live_before: int = 0
    row_limit: int | None = None
    rows: FrozenBitMap | None = None
    """Offsets of the rows to read; None for all live rows."""
    recheck: bool = True
    """Whether the predicate has to be evaluated for `rows`; otherwise they are known to match."""

    @property
    def most_rows(self) -> int | None:
        """How many rows the task looks at, at most; None if that is not known."""
        if self.rows is not None:
            return len(self.rows)
        stop = self.fragment.physical_rows if self.stop is None else self.stop
        return None if stop is None else stop - self.start

    def matching(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for rows that are known to match."""
        return replace(self, rows=FrozenBitMap(rows), recheck=False)

    def within(self, rows: AbstractBitMap) -> ScanTask:
        """Return the task for those of its rows that are among these; its predicate still holds."""
        common = rows if self.rows is None else self.rows & rows
        return replace(self, rows=FrozenBitMap(common))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """Tasks in row order, and the steps after them: offset, limit and order."""

    spec: ScanSpec
    tasks: tuple[ScanTask, ...]
    skip: int = 0
    limit: int | None = None
    order_by: tuple[Ordering, ...] = ()
    schema: pa.Schema
    fragment_readahead: int
    strict_batch_size: bool = False
    index_search: IndexSearch | None = None
    """What indices said about the filter; None if none was asked."""
