"""Scan as Spark builds it: pushdown and partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.values.conditions import (
    Column,
    Condition,
    IsNull,
    Not,
    all_of,
    condition_sql,
    fragment_test,
)
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.reads import (
    Function,
    Kind,
    Ordering,
    PartialAggregation,
    TopRows,
    can_sort,
    can_sum,
    sum_type,
)
from lancelake.spark.jvm.catalyst import (
    planned,
    select_predicates,
    share_metrics,
)
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.proxy import ScanBuilderProxy, ScanProxy, implements
from lancelake.spark.jvm.python_tasks import (
    driver_metrics,
    java_schema,
    python_metrics,
    python_schema,
    reader_factory,
)
from lancelake.spark.jvm.spark_conditions import JavaExpressions
from lancelake.spark.tasks import columns as metadata_columns
from lancelake.spark.tasks.read_plan import (
    Aggregation,
    PlannedRead,
    ReadRequest,
    column_name,
    column_types,
    encode,
    read_partition,
    row_count,
)
from lancelake.spark.values.spark_types import spark_type

LEAST_PRUNED_BYTES = 16 << 20
"""Smaller scans without an index are read sooner than the values that would prune them."""
# Values of a join that prune a scan at run time: always, at most, and for how many rows each.
_FEW_VALUES, _MOST_VALUES, _ROWS_PER_VALUE = 1_000, 100_000, 4
_PARTITIONS = "numSplits"
_FRAGMENTS = "numFragments"
_SKIPPED = "numFragmentsSkipped"
_INDEXED = "numFragmentsByIndex"
_TEXTS = {
    _FRAGMENTS: "fragments to read",
    _SKIPPED: "fragments skipped",
    _INDEXED: "fragments read by index",
    _PARTITIONS: "splits",
}


@implements(
    "read.SupportsReportStatistics",
    "read.SupportsRuntimeV2Filtering",
    "read.Batch",
    "java.util.function.BooleanSupplier",
    "lancelake.Planned",
)
class LanceScan(ScanProxy):
    """Reads rows, or partial aggregates of them."""

    def __init__(
        self, gateway: Gateway, request: ReadRequest, expressions: JavaExpressions
    ) -> None:
        super().__init__(gateway)
        self._request = request
        self._expressions = expressions
        self._runtime: Any = None
        self._runtime_filters: tuple[Condition, ...] = ()
        self._read = PlannedRead(request)
        gateway.once("metrics of scans", self._share_metrics)

    def identity(self) -> str:
        filters = [condition_sql(f) for f in self._request.filters + self._runtime_filters]
        return describe(replace(self._request, filters=()), filters)

    def facts(self) -> dict[str, object]:
        estimate, texts = self._read.estimate, self.texts()
        return {
            **texts,
            "description": texts["toString"],
            "columnarSupportMode": "SUPPORTED",
            "estimateStatistics": [estimate.bytes, estimate.rows],
            "filterAttributes": self._filter_columns(),
            # SelectiveScans asks whether the pushed filters select some of the rows.
            "getAsBoolean": any(_is_selective(condition) for condition in self._request.filters),
            "readSchema": self._request.schema.json(),
            "reflectsFullyPushedDownFilters": True,
            "supportedCustomMetrics": True,
            "supportsIterativePushdown": False,
        }

    def planned(self) -> Any:
        """Return the partitions, their readers and the metrics of the driver."""
        parts = self._read.partitions()
        fragments = {task.fragment.id for part in parts for task in part.tasks}
        every = len(self._read.request.snapshot.manifest.fragments)
        by_index = {t.fragment.id for part in parts for t in part.tasks if t.rows is not None}
        values = {
            _FRAGMENTS: len(fragments),
            _SKIPPED: every - len(fragments),
            _PARTITIONS: len(parts),
            _INDEXED: len(by_index),
        }
        factory = reader_factory(self.gateway, read_partition, self._read.request.schema)
        return planned(self.gateway, [encode(part) for part in parts], factory, values)

    def _share_metrics(self) -> bool:
        metrics = [*python_metrics(self.gateway), *driver_metrics(self.gateway, _TEXTS)]
        metric = self.gateway.connector("metric.CustomMetric")
        share_metrics(self.gateway, self.gateway.array(metric, metrics))
        return True

    def _filter_columns(self) -> list[str]:
        """Return the columns by whose values a join may prune the scan at run time."""
        names: list[str] = []
        if self._request.aggregation is None and self._request.limit is None:
            names = [f.name for f in self._request.schema.fields if "." not in f.name]
        if self._read.estimate.bytes < LEAST_PRUNED_BYTES:
            indexed = _indexed_columns(self._request.snapshot)
            names = [name for name in names if name in indexed]
        return [n for n in names if n not in metadata_columns.NAMES and "`" not in n]

    def filter(self, predicates: Any) -> None:
        conditions = self._expressions.conditions(predicates, most=self._most_values() + 1)
        positions = [
            position for position, condition in enumerate(conditions) if condition is not None
        ]
        self._runtime = (
            select_predicates(self.gateway, predicates, positions) if positions else None
        )
        self._runtime_filters = tuple(
            condition for condition in conditions if condition is not None
        )
        filters = self._request.filters + self._runtime_filters
        if filters != self._read.request.filters:
            self._read = PlannedRead(replace(self._request, filters=filters))

    def _most_values(self) -> int:
        """Return how many values of a join prune: few, also beside the rows they select from.

        They are fetched from Java and sent with every task; the join itself applies them anyway.
        """
        rows = row_count(self._request.snapshot)
        return max(_FEW_VALUES, min(_MOST_VALUES, rows // _ROWS_PER_VALUE))

    # What Spark asks for again once it has filtered at run time.

    def pushedPredicates(self) -> Any:
        return super().pushedPredicates() if self._runtime is None else self._runtime

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)


@implements("read.LocalScan")
class LocalCount(ScanProxy):
    """A row count from metadata; no rows are read."""

    def __init__(self, gateway: Gateway, request: ReadRequest, columns: int) -> None:
        super().__init__(gateway)
        self._request, self._columns = request, columns

    def identity(self) -> str:
        return f"{describe(self._request, [])}, counted from metadata"

    def facts(self) -> dict[str, object]:
        texts = self.texts()
        schema = self._request.schema.json()
        return {**texts, "description": texts["toString"], "readSchema": schema}

    def rows(self) -> Any:
        count = row_count(self._request.snapshot)
        make = self.gateway.cls("org.apache.spark.sql.catalyst.expressions.GenericInternalRow")
        row = make(self._columns)
        for position in range(self._columns):
            row.setLong(position, count)
        return self.gateway.array(
            self.gateway.cls("org.apache.spark.sql.catalyst.InternalRow"), [row]
        )


def describe(request: ReadRequest, filters: list[str]) -> str:
    """Describe a scan, without any option that might be secret."""
    snapshot = request.snapshot
    branch = f", branch {snapshot.branch}" if snapshot.branch else ""
    parts = [f"lance {snapshot.location.uri} (version {snapshot.version}{branch})"]
    parts.append(f"columns [{', '.join(_column_texts(request))}]")
    if filters or request.filters:
        parts.append(f"filters [{', '.join(filters or map(condition_sql, request.filters))}]")
    if request.lookup is not None:
        names = ", ".join(field.name for field in request.lookup.fields)
        parts.append(f"{request.lookup.keys.table.num_rows} keys looked up by [{names}]")
    if request.aggregation is not None:
        partial = request.aggregation.partial
        functions = [f"{f.kind.value}({f.column or '*'})" for f in partial.functions]
        parts.append(f"partial aggregates [{', '.join(functions)}] by [{', '.join(partial.keys)}]")
    if request.top is not None:
        keys = [f"{k.column} {'asc' if k.ascending else 'desc'}" for k in request.top.keys]
        parts.append(f"first {request.top.count} by [{', '.join(keys)}]")
    if request.limit is not None:
        parts.append(f"limit {request.limit}")
    return ", ".join(parts)


def _indexed_columns(snapshot: Snapshot) -> set[str]:
    """Return the names of columns that an index may be asked about."""
    indexed = {field for entry in snapshot.indices for field in entry.fields}
    return {field.name for field in snapshot.manifest.schema.fields if field.id in indexed}


def _is_selective(condition: Condition) -> bool:
    """Whether a condition does more than exclude nulls, which Spark adds to every join key."""
    return not (isinstance(condition, Not) and isinstance(condition.part, IsNull))


def _column_texts(request: ReadRequest) -> list[str]:
    if request.aggregation is not None:
        return [".".join(path) for path in request.aggregation.paths]
    kinds = [(f.name, f.dataType.simpleString()) for f in request.schema.fields]
    return [f"{name}:{kind}" if kind.startswith("struct") else name for name, kind in kinds]


_MAX_TOP = 10_000
_KINDS = {"CountStar": Kind.COUNT_ALL, "Count": Kind.COUNT, "Min": Kind.MIN, "Max": Kind.MAX}
_KINDS["Sum"] = Kind.SUM


def aggregation_of(
    aggregation: Any, expressions: JavaExpressions
) -> tuple[Aggregation, t.StructType] | None:
    """Return the aggregation and the schema of its results; None if it would not be exact."""
    keys = [expressions.column(key) for key in aggregation.groupByExpressions()]
    functions = [_function(f, expressions) for f in aggregation.aggregateExpressions()]
    supported_keys = [k for k in keys if k is not None and _can_group(k.dtype)]
    supported = [f for f in functions if f is not None]
    if len(supported_keys) < len(keys) or len(supported) < len(functions):
        return None
    used = [*supported_keys, *(column for _, column in supported if column is not None)]
    if any(column.path[0] in metadata_columns.NAMES for column in used):
        return None
    key_names = tuple(f"key_{i}" for i in range(len(keys)))
    fields = [
        t.StructField(name, spark_type(key.dtype), nullable=True)
        for name, key in zip(key_names, supported_keys, strict=True)
    ]
    named = [
        Function(kind=kind, column=None if c is None else column_name(c.path), name=f"value_{i}")
        for i, (kind, c) in enumerate(supported)
    ]
    fields += [
        t.StructField(function.name, _result_type(kind, c), nullable=True)
        for function, (kind, c) in zip(named, supported, strict=True)
    ]
    inputs = dict.fromkeys((c.path, c.dtype) for c in used)
    partial = PartialAggregation(
        keys=tuple(column_name(key.path) for key in supported_keys),
        key_names=key_names,
        functions=tuple(named),
        inputs=pa.schema([(column_name(path), dtype) for path, dtype in inputs]),
    )
    paths = tuple(path for path, _ in inputs)
    return Aggregation(paths=paths, partial=partial), t.StructType(fields)


def averages_longs(aggregation: Any, expressions: JavaExpressions) -> bool:
    """Whether an average of 64-bit integers is requested.

    Spark computes it from a floating-point sum. A pushed average is computed from a 64-bit integer
    sum, which may overflow.
    """
    averages = [
        f for f in aggregation.aggregateExpressions() if f.getClass().getSimpleName() == "Avg"
    ]
    columns = [expressions.column(function.column()) for function in averages]
    return any(column is not None and pa.types.is_int64(column.dtype) for column in columns)


def top_of(orders: Any, count: int, expressions: JavaExpressions) -> TopRows | None:
    """Return the top rows by these orders; None if Arrow and Spark sort differently."""
    keys: list[Ordering] = []
    for order in orders:
        column = expressions.column(order.expression())
        if column is None or len(column.path) > 1 or not can_sort(column.dtype):
            return None
        if column.path[0] in metadata_columns.NAMES:
            return None
        ascending = order.direction().toString() == "ASC"
        first = order.nullOrdering().toString() == "NULLS FIRST"
        keys.append(Ordering(column=column.path[0], ascending=ascending, nulls_first=first))
    return TopRows(keys=tuple(keys), count=count) if count <= _MAX_TOP else None


def _function(function: Any, expressions: JavaExpressions) -> tuple[Kind, Column | None] | None:
    kind = _KINDS.get(str(function.getClass().getSimpleName()))
    if kind is None:
        return None
    if kind is Kind.COUNT_ALL:
        return kind, None
    if kind in (Kind.COUNT, Kind.SUM) and function.isDistinct():
        return None
    column = expressions.column(function.column())
    if column is None or not _can_aggregate(kind, column.dtype):
        return None
    return kind, column


def _can_aggregate(kind: Kind, dtype: pa.DataType) -> bool:
    if kind is Kind.COUNT:
        return True
    if kind is Kind.SUM:
        return can_sum(dtype)
    is_float = dtype in (pa.float32(), pa.float64())
    return bool(is_float or pa.types.is_boolean(dtype) or _is_exact(dtype))


def _can_group(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(dtype) or _is_exact(dtype))


def _is_exact(dtype: pa.DataType) -> bool:
    """Whether values compare in Arrow as they do in Spark."""
    if pa.types.is_timestamp(dtype):
        return bool(dtype.unit == "us")
    number = pa.types.is_signed_integer(dtype) or pa.types.is_decimal128(dtype)
    text = dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return bool(number or text or pa.types.is_date32(dtype))


def _result_type(kind: Kind, column: Column | None) -> t.DataType:
    if kind in (Kind.COUNT, Kind.COUNT_ALL) or column is None:
        return t.LongType()
    return spark_type(sum_type(column.dtype) if kind is Kind.SUM else column.dtype)


@implements(
    "read.SupportsPushDownRequiredColumns",
    "read.SupportsPushDownV2Filters",
    "read.SupportsPushDownLimit",
    "read.SupportsPushDownTopN",
    "read.SupportsPushDownAggregates",
)
class LanceScanBuilder(ScanBuilderProxy):
    """Collects the operations pushed into one scan."""

    def __init__(self, gateway: Gateway, request: ReadRequest) -> None:
        super().__init__(gateway)
        self._request = request
        types = column_types(request.snapshot.manifest.schema)
        self._expressions = JavaExpressions(gateway, types)
        self._averages_longs = False

    def pruneColumns(self, required: Any) -> None:
        if self._request.aggregation is None:
            self._request = replace(self._request, schema=python_schema(required))

    def pushPredicates(self, predicates: Any) -> Any:
        conditions = self._expressions.conditions(predicates)
        left = [position for position, condition in enumerate(conditions) if condition is None]
        rest = self._of(predicates, left, len(conditions))
        if left:
            self._choose_fragments(rest)
        filters = tuple(condition for condition in conditions if condition is not None)
        self._request = replace(self._request, filters=filters)
        return rest

    def _choose_fragments(self, predicates: Any) -> None:
        """Select fragments by conditions on their id, which Spark still evaluates."""
        snapshot = self._request.snapshot
        expressions = JavaExpressions(self.gateway, metadata_columns.fragment_type(snapshot))
        conditions = expressions.conditions(predicates)
        both = all_of([condition for condition in conditions if condition is not None])
        may_hold = fragment_test(both, {(metadata_columns.FRAGMENT_ID,): 0})
        if may_hold is not None:
            # Fragments are decoded only for a condition on them.
            every = (fragment.id for fragment in snapshot.manifest.fragments)
            selected = self._request.fragment_ids
            ids = tuple(i for i in (every if selected is None else selected) if may_hold(i))
            self._request = replace(self._request, fragment_ids=ids)

    def pushedPredicates(self) -> Any:
        # Java knows those that were pushed: the ones that were not returned.
        return self._none()

    def pushLimit(self, limit: int) -> bool:
        self._request = replace(self._request, limit=limit)
        return True

    def isPartiallyPushed(self) -> bool:
        # Without a filter the limit is applied to row counts when the scan is planned.
        return bool(self._request.filters) or self._request.top is not None

    def pushTopN(self, orders: Any, limit: int) -> bool:
        top = top_of(orders, limit, self._expressions)
        if top is None or self._request.aggregation is not None:
            return False
        self._request = replace(self._request, top=top)
        return True

    def supportCompletePushDown(self, aggregation: Any) -> bool:
        # Only here are averages visible; sums and counts are pushed.
        self._averages_longs |= averages_longs(aggregation, self._expressions)
        return self._counts_only(aggregation)

    def pushAggregation(self, aggregation: Any) -> bool:
        converted = aggregation_of(aggregation, self._expressions)
        if converted is None or self._averages_longs:
            return False
        pushed, schema = converted
        self._request = replace(self._request, aggregation=pushed, schema=schema)
        return True

    def build(self) -> Any:
        aggregation = self._request.aggregation
        counts_only = aggregation is not None and aggregation.partial.counts_only
        if aggregation is not None and counts_only and not self._request.filters:
            columns = len(aggregation.partial.functions)
            return LocalCount(self.gateway, self._request, columns)
        return LanceScan(self.gateway, self._request, self._expressions)

    def _counts_only(self, aggregation: Any) -> bool:
        """Whether metadata is sufficient for the result, with nothing left to aggregate."""
        if self._request.filters:
            return False
        converted = aggregation_of(aggregation, self._expressions)
        if converted is None or converted[0].partial.keys:
            return False
        return all(f.kind is Kind.COUNT_ALL for f in converted[0].partial.functions)

    def _of(self, predicates: Any, positions: list[int], count: int) -> Any:
        """Return the predicates at some positions; mostly these are all or none."""
        if len(positions) == count:
            return predicates
        return select_predicates(self.gateway, predicates, positions) if positions else self._none()

    def _none(self) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.filter.Predicate"), [])
