"""Change feed in Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.conditions import Comparison, Condition, Operator, joined
from lancelake.core.values.metadata import Snapshot
from lancelake.core.values.tasks import ChangeTask, SplitLimits, execute_changes, pack
from lancelake.core.values.versions import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    FEED_NAMES,
    ROW_ID,
    AsOf,
    AtVersion,
    ChangeRequest,
    Point,
)
from lancelake.errors import InvalidRequestError
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.tasks.read_plan import RowsRequest, column_types
from lancelake.spark.values.options import TableOptions, parse_time
from lancelake.spark.values.spark_types import TypeOf, arrow_schema, nullable_schema, spark_schema

FEED = "readChangeFeed"
FEED_OPTIONS = (
    FEED,
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "netChanges",
)
FEED_FIELDS = (
    t.StructField(ROW_ID, t.LongType()),
    t.StructField(CHANGE_TYPE, t.StringType()),
    t.StructField(COMMIT_VERSION, t.LongType()),
    t.StructField(COMMIT_TIMESTAMP, t.TimestampType()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions whose changes are read: those after `begin`, up to and including `end`.

    `begin` defaults to the oldest existing version, `end` to the newest.
    """

    begin: Point | None = None
    end: Point | None = None
    is_net: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest(RowsRequest):
    """One read of changes: the newest version, the range, and pushed operations.

    Changes committed before `first` or after `last` are excluded.
    """

    versions: Versions
    first: int | None = None
    last: int | None = None
    cores: int = 1

    @staticmethod
    def of(snapshot: Snapshot, versions: Versions, cores: int = 1) -> FeedRequest:
        """Request all columns of the last version of the range."""
        schema = feed_schema(last_version(snapshot, versions))
        return FeedRequest(snapshot=snapshot, versions=versions, schema=schema, cores=cores)

    def over(self, options: TableOptions) -> FeedRequest:
        """Return the request for the versions set by options; unchanged without such options."""
        versions = versions_of(options)
        return self if versions == Versions() else replace(self, versions=versions)

    def partitions(self) -> list[FeedPartition]:
        """Return the input of each Spark partition, in commit order."""
        versions, table = self.versions, Table(self.snapshot)
        last = last_version(self.snapshot, versions)
        own = set(last.manifest.schema.names)
        columns = tuple(n for n in self.schema.fieldNames() if n in own and n not in FEED_NAMES)
        wanted = ChangeRequest(columns=columns, filter=joined(self.filters), is_net=versions.is_net)
        begin = first_version(self.snapshot, versions.begin)
        if self.first is not None and not versions.is_net:
            number = table.history.range(begin, versions.end).begin
            begin = AtVersion(min(last.version, max(number, self.first - 1)))
        tasks = table.history.changes(begin, versions.end, wanted).tasks
        in_range = [t for t in tasks if self.last is None or t.commit.version <= self.last]
        schema = arrow_schema(self.schema)
        groups = pack(in_range, lambda task: task.fragment, SplitLimits(cores=self.cores))
        return [FeedPartition(tasks=group, schema=schema) for group in groups]

    def types(self) -> TypeOf:
        """Return a type lookup for the columns of the feed."""
        last = last_version(self.snapshot, self.versions)
        own, shown = column_types(last.manifest.schema), set(self.schema.fieldNames())

        def type_of(path: tuple[str, ...]) -> pa.DataType | None:
            if path[0] not in shown:
                return None
            of_feed = _FEED_TYPES.get(path[0]) if len(path) == 1 else None
            return own(path) if of_feed is None else of_feed

        return type_of

    def texts(self) -> Sequence[str]:
        """Return what is read, and its range."""
        net = ("net",) if self.versions.is_net else ()
        return "changes", f"after {self.versions.begin} up to {self.versions.end}", *net

    def add_filter(self, condition: Condition) -> FeedRequest:
        """Add a condition; one on the commit version excludes versions."""
        request = replace(self, filters=(*self.filters, condition))
        if not isinstance(condition, Comparison) or condition.column.path != (COMMIT_VERSION,):
            return request
        value, first, last = condition.value.as_py(), self.first, self.last
        operator = condition.operator
        if operator in (Operator.GREATER, Operator.GREATER_EQUAL, Operator.EQUAL):
            low = value + 1 if operator is Operator.GREATER else value
            first = low if first is None else max(first, low)
        if operator in (Operator.LESS, Operator.LESS_EQUAL, Operator.EQUAL):
            high = value - 1 if operator is Operator.LESS else value
            last = high if last is None else min(last, high)
        return replace(request, first=first, last=last)


_FEED_TYPES = {CHANGE_TYPE: pa.string(), COMMIT_VERSION: pa.int64()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPartition:
    """Tasks of a feed, whose changes are returned in the Arrow types that Spark expects."""

    tasks: tuple[ChangeTask, ...]
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes; columns missing in the last version of the range are null."""
        conform = SparkConformer(self.schema, fills=True)
        for task in self.tasks:
            yield from map(conform, execute_changes(task))


def feed_schema(snapshot: Snapshot) -> t.StructType:
    """Return the columns of a feed that ends with a version."""
    # Rows of older versions lack columns that were added later.
    own = nullable_schema(spark_schema(snapshot.manifest.schema))
    return t.StructType([*own.fields, *FEED_FIELDS])


def versions_of(options: TableOptions) -> Versions:
    """Parse a range from options: its first and last version, or times."""
    return Versions(
        begin=_parse_bound(options, "starting"),
        end=_parse_bound(options, "ending"),
        is_net=options.flag("netChanges", default=False),
    )


def _parse_bound(options: TableOptions, which: str) -> Point | None:
    version, time = options.whole(f"{which}Version"), options.get(f"{which}Timestamp")
    if version is not None and time is not None:
        raise InvalidRequestError(f"{which}Version and {which}Timestamp cannot be combined")
    if version is not None:
        return AtVersion(max(0, version - 1) if which == "starting" else version)
    if time is None:
        return None
    at = parse_time(time)
    # Versions committed exactly at that time are included.
    return at if which == "ending" else AsOf(at.time_us - 1)


def first_version(snapshot: Snapshot, begin: Point | None) -> Point:
    """Return the first version of a range, by default the oldest existing one."""
    if begin is not None:
        return begin
    oldest = min(name.version for name in TablePlace(snapshot.location).versions())
    return AtVersion(0 if oldest == 1 else oldest)


def last_version(snapshot: Snapshot, versions: Versions) -> Snapshot:
    """Open the last version of a range."""
    if versions.end is None:
        return snapshot
    first = first_version(snapshot, versions.begin)
    number = Table(snapshot).history.range(first, versions.end).end
    if number in (0, snapshot.version):
        return snapshot
    return Table(snapshot).at(AtVersion(number)).snapshot
