"""Tables that are answered by a request: metadata, change feed, latest rows; reads by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values import descriptions
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.versions import COMMIT_VERSION, AsOf, AtVersion, Point
from lancelake.errors import InvalidRequestError
from lancelake.spark.connector.stream_table import stream_of
from lancelake.spark.jvm.gateway import Gateway, cores
from lancelake.spark.jvm.proxy import Proxy, ScanBuilderProxy, ScanProxy, TableProxy, implements
from lancelake.spark.jvm.python_tasks import (
    input_partitions,
    java_schema,
    python_schema,
    reader_factory,
    v2_columns,
)
from lancelake.spark.jvm.spark_conditions import JavaExpressions
from lancelake.spark.reading.version_table import (
    ReadableTable,
    default_limits,
    dict_of,
)
from lancelake.spark.tasks.change_feed import (
    FEED,
    FEED_OPTIONS,
    FeedRequest,
    Versions,
)
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.tasks.latest_plan import (
    LATEST_OPTIONS,
    LatestRequest,
)
from lancelake.spark.tasks.read_plan import (
    RowsRequest,
    encode,
    read_partition,
)
from lancelake.spark.values.options import (
    TableOptions,
    add_zones,
)
from lancelake.spark.values.spark_types import (
    TypeOf,
    arrow_schema,
    declared,
    nullable_schema,
    shown_schema,
    spark_field,
)


@dataclass(frozen=True, slots=True)
class FactsPartition:
    """Rows that are part of the partition."""

    rows: pa.Table
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the Arrow types that Spark expects."""
        conform = SparkConformer(self.schema)
        yield from (conform(batch) for batch in self.rows.combine_chunks().to_batches())


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRequest(RowsRequest):
    """A read of a metadata table of a version."""

    facts: str
    limit: int | None = None

    def types(self) -> TypeOf:
        """Return no type for any column: Spark filters the few rows."""
        return lambda _: None

    def partitions(self) -> Sequence[FactsPartition]:
        """Return the only partition, with its rows."""
        rows = descriptions.facts(self.facts, self.snapshot, self.limit)
        # An Arrow table without columns does not keep its number of rows.
        rows = rows.select(self.schema.fieldNames() or rows.column_names[:1])
        return [FactsPartition(rows, arrow_schema(self.schema))]

    def texts(self) -> Sequence[str]:
        """Return the name of the table, and the limit."""
        return self.facts, *(() if self.limit is None else (f"limit {self.limit}",))

    def add_limit(self, limit: int) -> FactsRequest:
        """Limit the rows."""
        return replace(self, limit=limit)


@implements(
    "read.SupportsPushDownRequiredColumns",
    "read.SupportsPushDownV2Filters",
    "read.SupportsPushDownLimit",
)
class RequestScanBuilder(ScanBuilderProxy):
    """Pushes columns, filters and limits down to a request."""

    def __init__(self, gateway: Gateway, request: RowsRequest) -> None:
        super().__init__(gateway)
        self._request = request
        self._expressions = JavaExpressions(gateway, request.types())
        self._pushed: list[Any] = []

    def pruneColumns(self, required: Any) -> None:
        self._request = replace(self._request, schema=python_schema(required))

    def pushPredicates(self, predicates: Any) -> Any:
        left: list[Any] = []
        for predicate in predicates:
            condition = self._expressions.condition(predicate)
            if condition is None:
                left.append(predicate)
                continue
            self._pushed.append(predicate)
            self._request = self._request.add_filter(condition)
        return self._predicates(left)

    def pushedPredicates(self) -> Any:
        return self._predicates(self._pushed)

    def pushLimit(self, limit: int) -> bool:
        limited = self._request.add_limit(limit)
        self._request = limited or self._request
        return limited is not None

    def build(self) -> Any:
        return _Scan(self.gateway, self._request)

    def _predicates(self, items: list[Any]) -> Any:
        return self.gateway.array(self.gateway.connector("expressions.filter.Predicate"), items)


@implements("read.Scan")
class _Scan(ScanProxy):
    def __init__(self, gateway: Gateway, request: RowsRequest) -> None:
        super().__init__(gateway)
        self._request = request

    def identity(self) -> str:
        return self._request.describe()

    def readSchema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

    def toBatch(self) -> Any:
        return _Batch(self.gateway, self._request)


@implements("read.Batch")
class _Batch(Proxy):
    def __init__(self, gateway: Gateway, request: RowsRequest) -> None:
        super().__init__(gateway)
        self._request = request

    def identity(self) -> str:
        return self._request.describe()

    def planInputPartitions(self) -> Any:
        return input_partitions(self.gateway, [encode(p) for p in self._request.partitions()])

    def createReaderFactory(self) -> Any:
        return reader_factory(self.gateway, read_partition, self._request.schema)


@implements("catalog.SupportsRead")
class FactsTable(ReadableTable):
    """A metadata table of one version."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, facts: str, name: str) -> None:
        schema = t.StructType([spark_field(f) for f in descriptions.facts_schema(facts)])
        super().__init__(gateway, snapshot, name, schema)
        self._facts = facts

    def newScanBuilder(self, options: Any) -> Any:  # noqa: ARG002
        request = FactsRequest(snapshot=self.snapshot, facts=self._facts, schema=self._schema)
        return RequestScanBuilder(self.gateway, request)

    def _rows(self) -> str:
        return f"{self._facts} of "


class _Feed(Proxy):
    """Common parts of tables and changelogs of a feed."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, versions: Versions, name: str) -> None:
        super().__init__(gateway)
        self._request = FeedRequest.of(snapshot, versions, cores(gateway))
        self._name = name

    def identity(self) -> str:
        return self._request.describe()

    def name(self) -> str:
        return self._name

    def newScanBuilder(self, options: Any) -> Any:
        location = self._request.snapshot.location
        given = add_zones(self.gateway.spark, dict_of(options))
        request = self._request.over(TableOptions.of(location, given, FEED_OPTIONS))
        return RequestScanBuilder(self.gateway, request)


@implements("catalog.SupportsRead", "lancelake.Streamed")
class FeedTable(_Feed, TableProxy):
    """The changes up to a version; options of a query set their range."""

    def schema(self) -> Any:
        return java_schema(self.gateway, self._request.schema)

    def capabilities(self) -> Any:
        return self.gateway.enum_set("catalog.TableCapability", ["BATCH_READ", "MICRO_BATCH_READ"])

    def asStream(self, options: Any) -> Any:
        snapshot = self._request.snapshot
        branch = {} if snapshot.branch is None else {"branch": snapshot.branch}
        target = TableOptions(location=snapshot.main_location, rest=branch)
        return stream_of(self.gateway, target, {**dict(options), FEED: "true"}, self.name())


@implements("catalog.Changelog")
class LanceChangelog(_Feed):
    """The changes of `CHANGES FROM VERSION ...`."""

    def columns(self) -> Any:
        return v2_columns(self.gateway, java_schema(self.gateway, self._request.schema))

    def containsCarryoverRows(self) -> bool:
        return False

    def containsIntermediateChanges(self) -> bool:
        return not self._request.versions.is_net

    def representsUpdateAsDeleteAndInsert(self) -> bool:
        return False

    def rowId(self) -> Any:
        make = self.gateway.connector("expressions.FieldReference")
        kind = self.gateway.connector("expressions.NamedReference")
        return self.gateway.array(kind, [make.column("_rowid")])

    def rowVersion(self) -> Any:
        return self.gateway.connector("expressions.FieldReference").column(COMMIT_VERSION)


@implements("catalog.SupportsRead")
class LatestTable(ReadableTable):
    """Reads the newest row of each key."""

    def __init__(self, gateway: Gateway, snapshot: Snapshot, name: str) -> None:
        Table(snapshot).wal.details()
        # Rows of the MemWAL may be older than a column.
        schema = nullable_schema(shown_schema(snapshot.manifest.schema))
        super().__init__(gateway, snapshot, name, schema)

    def schema(self) -> Any:
        return java_schema(self.gateway, declared(self._schema, self.snapshot.manifest.schema))

    def newScanBuilder(self, options: Any) -> Any:
        given = TableOptions.of(self.snapshot.location, dict_of(options), LATEST_OPTIONS)
        limits = default_limits(self.gateway)
        request = LatestRequest.of(self.snapshot, self._schema, given, limits)
        return RequestScanBuilder(self.gateway, request)

    def _rows(self) -> str:
        return "latest rows of "


_NET = "NET_CHANGES"


def changelog_versions(context: Any) -> Versions:
    """Return the requested versions, and whether only net changes are requested."""
    is_net = context.deduplicationMode().name() == _NET
    versions = context.range()
    match str(versions.getClass().getSimpleName()):
        case "VersionRange":
            end = _optional(versions.endingVersion())
            return Versions(
                begin=_after(versions.startingVersion(), versions.startingBoundInclusive()),
                end=None if end is None else _until(end, versions.endingBoundInclusive()),
                is_net=is_net,
            )
        case "TimestampRange":
            end = _optional(versions.endingTimestamp())
            first = int(versions.startingTimestamp())
            first -= 1 if versions.startingBoundInclusive() else 0
            return Versions(
                begin=AsOf(first),
                end=None if end is None else _until_time(end, versions.endingBoundInclusive()),
                is_net=is_net,
            )
        case _:
            return Versions(is_net=is_net)


def _optional(value: Any) -> Any:
    return value.get() if value.isPresent() else None


def _number(text: str) -> int:
    if not text.isdigit():
        raise InvalidRequestError(f"{text!r} is not a version number")
    return int(text)


def _after(text: str, is_inclusive: bool) -> Point:
    number = _number(text)
    return AtVersion(max(0, number - 1) if is_inclusive else number)


def _until(text: str, is_inclusive: bool) -> Point:
    number = _number(text)
    return AtVersion(number if is_inclusive else max(0, number - 1))


def _until_time(micros: int, is_inclusive: bool) -> Point:
    return AsOf(micros if is_inclusive else micros - 1)
