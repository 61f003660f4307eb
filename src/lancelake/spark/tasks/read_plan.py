"""Plan of a read in partitions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, Self

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.conditions import Condition, condition_sql, joined, paths_of
from lancelake.core.values.metadata import (
    Field,
    FieldId,
    FragmentId,
    Schema,
    Snapshot,
    described,
    join_path,
    public_field,
)
from lancelake.core.values.reads import KeyLookup, PartialAggregation, ScanRequest, TopRows
from lancelake.core.values.tasks import (
    META_TYPE,
    ScanColumns,
    ScanPlan,
    ScanTask,
    SplitLimits,
    batch_rows,
    column_widths,
    columns_of,
    count_scanned,
    execute_scan,
    plan_size,
    port,
    prune,
    split,
)
from lancelake.spark.tasks import columns
from lancelake.spark.tasks.columns import SparkConformer, with_fragment_id
from lancelake.spark.values.options import USE_INDEX, TableOptions
from lancelake.spark.values.spark_types import TypeOf, arrow_schema


class TravelingPartition(Protocol):
    """A value that is planned on the driver and read on an executor."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPartition:
    """Tasks of a scan, and the operations on their rows before Spark receives them."""

    tasks: tuple[ScanTask, ...]
    schema: pa.Schema
    limit: int | None = None
    top: TopRows | None = None
    aggregation: PartialAggregation | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        rows: Iterator[pa.RecordBatch] = self._rows()
        if self.aggregation is not None and self.aggregation.counts_only:
            rows = iter([self.aggregation.counted(sum(count_scanned(task) for task in self.tasks))])
        elif self.aggregation is not None:
            rows = self.aggregation.run(rows)
        elif self.top is not None:
            rows = self.top.run(rows)
        conform = SparkConformer(self.schema)
        yield from (conform(batch) for batch in _first(rows, self.limit))

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if not self.tasks:
            return
        columns = ScanColumns.of(self.tasks[0].spec)
        for task in self.tasks:
            for batch in execute_scan(task, columns):
                yield with_fragment_id(batch, self.schema, task.fragment.id)


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if not left:
            return


def encode(partition: TravelingPartition) -> bytes:
    """Encode a partition as bytes."""
    return port.dumps(partition)


def read_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the partition whose bytes are the only value of the only batch."""
    for batch in batches:
        yield from read_bytes(batch.column(0)[0].as_py())


def read_bytes(data: bytes) -> Iterator[pa.RecordBatch]:
    """Read the partition that `encode` encoded on the driver."""
    partition: TravelingPartition = port.loads(data)
    yield from partition.batches()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRequest(ABC):
    """A read that is not one scan of a version: the columns, and conditions of all rows."""

    snapshot: Snapshot
    schema: t.StructType
    filters: tuple[Condition, ...] = ()

    @abstractmethod
    def types(self) -> TypeOf:
        """Return a type lookup, by path, for the columns that conditions may use."""

    @abstractmethod
    def partitions(self) -> Sequence[TravelingPartition]:
        """Return the input of each Spark partition."""

    @abstractmethod
    def texts(self) -> Sequence[str]:
        """Return what is read, and details of it."""

    def add_filter(self, condition: Condition) -> Self:
        """Add a condition."""
        return replace(self, filters=(*self.filters, condition))

    def add_limit(self, limit: int) -> Self | None:  # noqa: ARG002
        """Limit the rows; None if Spark has to."""
        return None

    def describe(self) -> str:
        """Describe the read, without any option that might be secret."""
        at, (what, *details) = self.snapshot, self.texts()
        where = f"{at.location.uri} (version {at.version}, branch {at.branch or 'main'})"
        parts = [f"lance {what} of {where}", *details]
        parts.append(f"columns [{', '.join(self.schema.fieldNames())}]")
        if self.filters:
            parts.append(f"filters [{', '.join(map(condition_sql, self.filters))}]")
        return ", ".join(parts)


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

    @staticmethod
    def of(
        snapshot: Snapshot, schema: t.StructType, options: TableOptions, limits: SplitLimits
    ) -> ReadRequest:
        """Request columns, with the options of a read."""
        return ReadRequest(
            snapshot=snapshot,
            schema=schema,
            batch_rows=options.positive("batchRows"),
            use_scalar_index=options.flag(USE_INDEX, default=True),
            limits=limit_partitions(options, limits),
        )


def limit_partitions(options: TableOptions, limits: SplitLimits) -> SplitLimits:
    """Return limits with the size that is set by options."""
    most = options.positive("maxPartitionBytes")
    return limits if most is None else replace(limits, max_bytes=most)


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
    pruned = Schema(fields=tuple(_prune_fields(request)), metadata=metadata)
    by_count = request.aggregation is None and request.top is None
    scan = ScanRequest(
        columns=_columns(request),
        filter=joined(request.filters),
        limit=request.limit if by_count else None,
        batch_size=request.batch_rows,
        fragment_ids=request.fragment_ids,
        use_scalar_index=request.use_scalar_index,
    )
    plan = Table(request.snapshot.with_schema(pruned)).plan(scan)
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
        returned = rows if most is None else min(rows, most)
        return ReadEstimate(
            rows=returned, bytes=max(1, int(size.bytes * returned / max(1, size.rows)))
        )


def row_count(source: Snapshot) -> int:
    """Count the rows of a version from its metadata."""
    return Table(source).count_rows()


def _columns(request: ReadRequest) -> tuple[str, ...]:
    if request.aggregation is not None:
        return tuple(column_name(path) for path in request.aggregation.paths)
    own = set(request.snapshot.manifest.schema.names)
    names = request.schema.fieldNames()
    return tuple(n for n in names if n in own or n != columns.FRAGMENT_ID)


def _prune_fields(request: ReadRequest) -> Iterator[Field]:
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


def column_types(schema: Schema) -> TypeOf:
    """Return a type lookup for a table's columns by path, including metadata columns."""

    def type_of(path: Path) -> pa.DataType | None:
        if len(path) == 1 and path[0] in columns.SCANNED:
            return META_TYPE
        for end in range(1, len(path)):
            node = node_at(schema, path[:end])
            if node is None or node.logical_type != "struct":
                return None
        node = node_at(schema, path)
        return None if node is None else public_field(described(node)).type

    return type_of
