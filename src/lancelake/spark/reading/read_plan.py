"""Plan the partitions of a Spark scan. Opens no data file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.projection import columns_of, prune
from lancelake.expr.condition import Condition, paths_of
from lancelake.expr.predicate import joined
from lancelake.format.column_path import join_path
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.schema import Field, Schema
from lancelake.scan.count import count_rows
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan as plan_scan
from lancelake.scan.reduce.aggregate import PartialAggregation
from lancelake.scan.reduce.top_rows import TopRows
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_width import column_widths
from lancelake.scan.split import SplitLimits, batch_rows, plan_size, split
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.partition import ReadPartition
from lancelake.spark.types import arrow_schema
from lancelake.table.merge.key_index import KeyLookup

Path = tuple[str, ...]
_AGGREGATE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregation:
    """An aggregation, and the columns that are read for it."""

    paths: tuple[Path, ...]
    partial: PartialAggregation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """One scan: the version, the output columns, and the pushed operations."""

    snapshot: Snapshot
    schema: t.StructType
    filters: tuple[Condition, ...] = ()
    limit: int | None = None
    top: TopRows | None = None
    aggregation: Aggregation | None = None
    batch_rows: int | None = None
    use_scalar_index: bool = True
    fragment_ids: tuple[FragmentId, ...] | None = None
    lookup: KeyLookup | None = None
    """Keys of which at least the rows with one of them are read."""

    limits: SplitLimits = field(default_factory=SplitLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEstimate:
    """Upper bound of the size of a read, as far as it is known in advance."""

    rows: int | None
    bytes: int


def column_name(path: Path) -> str:
    """Return the name of the scan output for a path."""
    return path[0] if len(path) == 1 else join_path(path)


def scan_plan(request: ReadRequest) -> ScanPlan:
    """Plan the scan below a read."""
    metadata = request.snapshot.manifest.schema.metadata
    pruned = Schema(fields=tuple(_pruned(request)), metadata=metadata)
    by_count = request.aggregation is None and request.top is None
    scan = ScanRequest(
        columns=_columns(request),
        filter=joined(request.filters),
        limit=request.limit if by_count else None,
        batch_size=request.batch_rows,
        fragment_ids=request.fragment_ids,
        use_scalar_index=request.use_scalar_index,
    )
    plan = plan_scan(request.snapshot.with_schema(pruned), scan)
    if request.lookup is not None:
        plan = replace(plan, tasks=tuple(request.lookup.narrowed(plan.tasks)))
    # The size of a file is that of all its columns.
    widths = column_widths(request.snapshot.manifest.schema)
    weighed = replace(plan, spec=replace(plan.spec, widths=widths))
    spec = replace(weighed.spec, batch_rows=request.batch_rows or batch_rows(weighed))
    return replace(plan, spec=spec, tasks=tuple(replace(task, spec=spec) for task in plan.tasks))


@dataclass(frozen=True)
class PlannedRead:
    """A read: its partitions and its estimated size. The scan is planned once for both."""

    request: ReadRequest

    @cached_property
    def scan(self) -> ScanPlan:
        """The scan of the read, planned on first use."""
        return scan_plan(self.request)

    def partitions(self) -> list[ReadPartition]:
        """Return the input of each Spark partition; a global aggregate has at least one."""
        request = self.request
        groups = split(self.scan, request.limits)
        aggregation = request.aggregation
        if not groups and aggregation is not None and not aggregation.partial.keys:
            groups = [()]
        return [
            ReadPartition(
                tasks=tasks,
                schema=arrow_schema(request.schema),
                limit=request.limit if aggregation is None else None,
                top=request.top,
                aggregation=None if aggregation is None else aggregation.partial,
            )
            for tasks in groups
        ]

    @cached_property
    def estimate(self) -> ReadEstimate:
        """Rows and bytes; the effect of filters is known only where indices answer them."""
        request = self.request
        if request.aggregation is not None:
            return ReadEstimate(rows=None, bytes=_AGGREGATE_BYTES)
        size = plan_size(self.scan)
        rows = row_count(request.snapshot)
        if size.rows or not self.scan.tasks:  # else the fragments have no row counts
            rows = min(rows, size.rows)
        most = request.limit if request.top is None else request.top.count
        kept = rows if most is None else min(rows, most)
        return ReadEstimate(rows=kept, bytes=max(1, int(size.bytes * kept / max(1, size.rows))))


def row_count(source: Snapshot) -> int:
    """Count the rows of a version from its metadata."""
    return count_rows(source)


def _columns(request: ReadRequest) -> tuple[str, ...]:
    if request.aggregation is not None:
        return tuple(column_name(path) for path in request.aggregation.paths)
    own = set(request.snapshot.manifest.schema.names)
    names = request.schema.fieldNames()
    return tuple(n for n in names if n in own or n != metadata_columns.FRAGMENT_ID)


def _pruned(request: ReadRequest) -> Iterator[Field]:
    """Yield the table's fields, pruned to those that are read."""
    schema = request.snapshot.manifest.schema
    keep: set[FieldId] = set()
    if request.aggregation is None:
        for wanted in request.schema.fields:
            keep |= _ids(_top(schema, wanted.name), wanted.dataType)
    paths = [path for condition in request.filters for path in paths_of(condition)]
    paths += () if request.aggregation is None else request.aggregation.paths
    for path in paths:
        node = node_at(schema, path)
        keep |= set() if node is None else columns_of(node)
    for top in schema.fields:
        left = prune(top, keep)
        if left is not None:
            yield left


def node_at(schema: Schema, path: Path) -> Field | None:
    """Return the field at a path."""
    node: Field | None = None
    level = schema.fields
    for name in path:
        node = next((f for f in level if f.name == name), None)
        if node is None:
            return None
        level = node.children
    return node


def _top(schema: Schema, name: str) -> Field | None:
    return next((f for f in schema.fields if f.name == name), None)


def _ids(node: Field | None, wanted: t.DataType) -> set[FieldId]:
    """Return the ids of the columns below a field that a Spark type includes."""
    if node is None:
        return set()
    if isinstance(wanted, t.StructType) and not node.owns_column:
        return {i for f in wanted.fields for i in _ids(node.child(f.name), f.dataType)}
    is_list = isinstance(wanted, t.ArrayType) and len(node.children) == 1
    if is_list and isinstance(wanted, t.ArrayType) and node.logical_type != "map":
        return _ids(node.children[0], wanted.elementType)
    return columns_of(node)
