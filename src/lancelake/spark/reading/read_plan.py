"""Plan the partitions of a Spark scan. Opens no data file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.data.projection import columns_of, prune
from lancelake.data.scan_source import ScanSource
from lancelake.expr.condition import Condition, paths_of
from lancelake.expr.predicate import joined
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.schema import Field, Schema, quote_segment
from lancelake.scan.count import count_rows
from lancelake.scan.plan import ScanPlan
from lancelake.scan.planner import plan as plan_scan
from lancelake.scan.reduce.aggregate import PartialAggregation
from lancelake.scan.reduce.top_rows import TopRows
from lancelake.scan.request import ScanRequest
from lancelake.scan.split import SplitLimits, batch_rows, estimated_bytes, split
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.partition import ReadPartition
from lancelake.spark.types import arrow_schema
from lancelake.table.snapshot import Snapshot

Path = tuple[str, ...]


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
    fragment_ids: tuple[FragmentId, ...] | None = None
    limits: SplitLimits = field(default_factory=SplitLimits)


def column_name(path: Path) -> str:
    """Return the name of the scan output for a path."""
    return path[0] if len(path) == 1 else ".".join(quote_segment(part) for part in path)


def scan_plan(request: ReadRequest) -> ScanPlan:
    """Plan the scan below a read."""
    source = request.snapshot.source
    pruned = Schema(fields=tuple(_pruned(request)), metadata=source.manifest.schema.metadata)
    by_count = request.aggregation is None and request.top is None
    scan = ScanRequest(
        columns=_columns(request),
        filter=joined(request.filters),
        limit=request.limit if by_count else None,
        batch_size=request.batch_rows,
        fragment_ids=request.fragment_ids,
    )
    narrow = replace(source, manifest=replace(source.manifest, schema=pruned))
    plan = plan_scan(narrow, scan)
    if request.batch_rows is not None:
        return plan
    spec = replace(plan.spec, batch_rows=batch_rows(plan))
    return replace(plan, spec=spec, tasks=tuple(replace(task, spec=spec) for task in plan.tasks))


def partitions(request: ReadRequest) -> list[ReadPartition]:
    """Return the input of each Spark partition; a global aggregate has at least one."""
    scan = scan_plan(request)
    groups = split(scan, request.limits)
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


def row_count(source: ScanSource) -> int:
    """Count the rows of a version from its metadata."""
    return count_rows(source)


def size_bytes(request: ReadRequest) -> int:
    """Estimate the bytes of a read."""
    plain = replace(request, filters=(), limit=None, top=None)
    return estimated_bytes(scan_plan(plain))


def input_schema(request: ReadRequest) -> pa.Schema:
    """Return the Arrow schema of the rows to aggregate."""
    return scan_plan(request).schema


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
