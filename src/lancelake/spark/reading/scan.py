"""A scan in Spark's planner: pushed operations, statistics and partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lancelake.commit.snapshot import Snapshot
from lancelake.expr.condition import Condition, IsNull, Not
from lancelake.expr.condition_sql import condition_sql
from lancelake.spark.jvm.expressions import JavaExpressions
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.jvm.plan_calls import chosen
from lancelake.spark.jvm.proxy import Proxy, ScanProxy, implements
from lancelake.spark.jvm.python_read import (
    driver_metrics,
    driver_values,
    input_partitions,
    java_schema,
    python_metrics,
    reader_factory,
)
from lancelake.spark.reading import metadata_columns
from lancelake.spark.reading.partition import encode, read
from lancelake.spark.reading.read_plan import (
    PlannedRead,
    ReadEstimate,
    ReadRequest,
    row_count,
)

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


@implements("read.Statistics")
class _Statistics(Proxy):
    def __init__(self, gateway: Gateway, estimate: ReadEstimate) -> None:
        super().__init__(gateway)
        self._estimate = estimate

    def sizeInBytes(self) -> Any:
        return self.gateway.optional_long(self._estimate.bytes)

    def numRows(self) -> Any:
        return self.gateway.optional_long(self._estimate.rows)

    def columnStats(self) -> Any:
        return self.gateway.map({})


@implements("read.Batch")
class _Batch(Proxy):
    def __init__(self, gateway: Gateway, read: PlannedRead, text: str) -> None:
        super().__init__(gateway)
        self._read, self._text = read, text
        self.driver_values: dict[str, int] = {}

    def identity(self) -> str:
        return self._text

    def planInputPartitions(self) -> Any:
        parts = self._read.partitions()
        fragments = {task.fragment.id for part in parts for task in part.tasks}
        self.driver_values[_FRAGMENTS] = len(fragments)
        every = len(self._read.request.snapshot.manifest.fragments)
        self.driver_values[_SKIPPED] = every - len(fragments)
        self.driver_values[_PARTITIONS] = len(parts)
        by_index = {t.fragment.id for part in parts for t in part.tasks if t.rows is not None}
        self.driver_values[_INDEXED] = len(by_index)
        return input_partitions(self.gateway, [encode(part) for part in parts])

    def createReaderFactory(self) -> Any:
        return reader_factory(self.gateway, read, self._read.request.schema)


@implements(
    "read.SupportsReportStatistics",
    "read.SupportsRuntimeV2Filtering",
    "java.util.function.BooleanSupplier",
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
        self._batch: _Batch | None = None
        self._read = PlannedRead(request)
        self._text: str | None = None

    def identity(self) -> str:
        # Spark asks many times, and values of a join may be thousands.
        if self._text is None:
            filters = [condition_sql(f) for f in self._request.filters + self._runtime_filters]
            self._text = describe(replace(self._request, filters=()), filters)
        return self._text

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

    def toBatch(self) -> Any:
        values = {} if self._batch is None else self._batch.driver_values
        self._batch = _Batch(self.gateway, self._read, self.identity())
        self._batch.driver_values = values
        return self._batch

    def estimateStatistics(self) -> Any:
        return _Statistics(self.gateway, self._read.estimate)

    def estimateSizeInBytes(self) -> Any:
        return self.gateway.optional_long(self._read.estimate.bytes)

    def getAsBoolean(self) -> bool:
        """Return whether the pushed filters select some of the rows; SelectiveScans uses it."""
        return any(_is_selective(condition) for condition in self._request.filters)

    def supportedCustomMetrics(self) -> Any:
        return self.gateway.once("metrics of scans", self._metrics)

    def _metrics(self) -> Any:
        metrics = [*python_metrics(self.gateway), *driver_metrics(self.gateway, _TEXTS)]
        return self.gateway.array(self.gateway.connector("metric.CustomMetric"), metrics)

    def reportDriverMetrics(self) -> Any:
        values = {} if self._batch is None else self._batch.driver_values
        return driver_values(self.gateway, values)

    def filterAttributes(self) -> Any:
        names: list[str] = []
        if self._request.aggregation is None and self._request.limit is None:
            names = [f.name for f in self._request.schema.fields if "." not in f.name]
        if self._read.estimate.bytes < LEAST_PRUNED_BYTES:
            indexed = _indexed_columns(self._request.snapshot)
            names = [name for name in names if name in indexed]
        make = self.gateway.connector("expressions.FieldReference")
        refs = [make.column(n) for n in names if n not in metadata_columns.NAMES and "`" not in n]
        return self.gateway.array(self.gateway.connector("expressions.NamedReference"), refs)

    def filter(self, predicates: Any) -> None:
        found = self._expressions.conditions(predicates, most=self._most_values() + 1)
        taken = [position for position, known in enumerate(found) if known is not None]
        self._runtime = chosen(self.gateway, predicates, taken) if taken else None
        self._runtime_filters = tuple(known for known in found if known is not None)
        filters = self._request.filters + self._runtime_filters
        if filters != self._read.request.filters:
            self._text = None
            self._read = PlannedRead(replace(self._request, filters=filters))

    def _most_values(self) -> int:
        """Return how many values of a join prune: few, also beside the rows they select from.

        They are fetched from Java and sent with every task; the join itself applies them anyway.
        """
        rows = row_count(self._request.snapshot)
        return max(_FEW_VALUES, min(_MOST_VALUES, rows // _ROWS_PER_VALUE))

    def pushedPredicates(self) -> Any:
        return super().pushedPredicates() if self._runtime is None else self._runtime


@implements("read.LocalScan")
class LocalCount(ScanProxy):
    """A row count from metadata; no rows are read."""

    def __init__(self, gateway: Gateway, request: ReadRequest, columns: int) -> None:
        super().__init__(gateway)
        self._request, self._columns = request, columns

    def identity(self) -> str:
        return f"{describe(self._request, [])}, counted from metadata"

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

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
    parts.append(f"columns [{', '.join(_shown(request))}]")
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


def _shown(request: ReadRequest) -> list[str]:
    if request.aggregation is not None:
        return [".".join(path) for path in request.aggregation.paths]
    return [_field_text(f.name, f.dataType.simpleString()) for f in request.schema.fields]


def _field_text(name: str, kind: str) -> str:
    return f"{name}:{kind}" if kind.startswith("struct") else name
