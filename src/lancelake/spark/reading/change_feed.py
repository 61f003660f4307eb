"""Read the change data feed on Spark: range of versions, columns and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.commit.versions import list_versions
from lancelake.errors import InvalidRequestError
from lancelake.expr.condition import Condition
from lancelake.expr.predicate import joined
from lancelake.spark.options.table_options import TableOptions, parse_time
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.types import arrow_schema, spark_schema
from lancelake.table.change_feed.execute import execute
from lancelake.table.change_feed.planner import plan_changes
from lancelake.table.change_feed.request import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    FEED_NAMES,
    ROW_ID,
    ChangeRequest,
)
from lancelake.table.change_feed.tasks import ChangeTask, RowsTask
from lancelake.table.change_feed.versions import Point, version_range
from lancelake.table.open import AsOf, AtVersion, open_snapshot

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
_MICROSECOND = 1000
_LEAST_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Versions whose changes are read: those after `begin`, up to and including `end`.

    `begin` defaults to the oldest existing version, `end` to the newest.
    """

    begin: Point | None = None
    end: Point | None = None
    is_net: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRequest:
    """One read of changes: the newest version, the range, and pushed operations.

    Changes committed before `first` or after `last` are excluded.
    """

    snapshot: Snapshot
    versions: Versions
    schema: t.StructType
    filters: tuple[Condition, ...] = ()
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
        found = versions_of(options)
        return self if found == Versions() else replace(self, versions=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPartition:
    """Tasks of a feed, whose changes are returned in the Arrow types that Spark expects."""

    tasks: tuple[ChangeTask, ...]
    schema: pa.Schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes; columns missing in the last version of the range are null."""
        conform = SparkConformer(self.schema)
        for task in self.tasks:
            for batch in execute(task):
                yield conform(self._completed(batch))

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for column in self.schema:
            if column.name not in batch.schema.names:
                nulls = pa.nulls(batch.num_rows, column.type)
                batch = batch.append_column(column.with_nullable(True), nulls)
        return batch


def feed_schema(snapshot: Snapshot) -> t.StructType:
    """Return the columns of a feed that ends with a version."""
    own = spark_schema(snapshot.manifest.schema).fields
    # Rows of older versions lack columns that were added later.
    shown = [t.StructField(f.name, f.dataType, True, f.metadata) for f in own]
    return t.StructType([*shown, *FEED_FIELDS])


def versions_of(options: TableOptions) -> Versions:
    """Parse a range from options: its first and last version, or times."""
    return Versions(
        begin=_bound(options, "starting"),
        end=_bound(options, "ending"),
        is_net=options.flag("netChanges", default=False),
    )


def _bound(options: TableOptions, which: str) -> Point | None:
    version, time = options.whole(f"{which}Version"), options.get(f"{which}Timestamp")
    if version is not None and time is not None:
        raise InvalidRequestError(f"{which}Version and {which}Timestamp cannot be combined")
    if version is not None:
        return AtVersion(max(0, version - 1) if which == "starting" else version)
    if time is None:
        return None
    at = parse_time(time)
    # Versions committed exactly at that time are included.
    return at if which == "ending" else AsOf(at.time_ns - _MICROSECOND)


def first_version(snapshot: Snapshot, begin: Point | None) -> Point:
    """Return the first version of a range, by default the oldest existing one."""
    if begin is not None:
        return begin
    oldest = min(name.version for name in list_versions(snapshot.location))
    return AtVersion(0 if oldest == 1 else oldest)


def last_version(snapshot: Snapshot, versions: Versions) -> Snapshot:
    """Open the last version of a range."""
    if versions.end is None:
        return snapshot
    first = first_version(snapshot, versions.begin)
    number = version_range(snapshot, first, versions.end).end
    if number in (0, snapshot.version):
        return snapshot
    return open_snapshot(snapshot.location, AtVersion(number), main=snapshot.main_location)


def feed_partitions(request: FeedRequest) -> list[FeedPartition]:
    """Return the input of each Spark partition, in commit order."""
    versions = request.versions
    last = last_version(request.snapshot, versions)
    own = set(last.manifest.schema.names)
    columns = tuple(n for n in request.schema.fieldNames() if n in own and n not in FEED_NAMES)
    asked = ChangeRequest(columns=columns, filter=joined(request.filters), is_net=versions.is_net)
    begin = first_version(request.snapshot, versions.begin)
    if request.first is not None and not versions.is_net:
        number = version_range(request.snapshot, begin, versions.end).begin
        begin = AtVersion(min(last.version, max(number, request.first - 1)))
    tasks = plan_changes(request.snapshot, begin, versions.end, asked).tasks
    kept = [t for t in tasks if request.last is None or t.commit.version <= request.last]
    schema = arrow_schema(request.schema)
    return [FeedPartition(tasks=part, schema=schema) for part in _packed(kept, request.cores)]


def _packed(tasks: Sequence[ChangeTask], cores: int) -> Iterator[tuple[ChangeTask, ...]]:
    """Group small tasks, so that there are a few partitions for each core."""
    quota = max(_LEAST_ROWS, sum(map(_rows, tasks)) // (4 * cores))
    held: list[ChangeTask] = []
    for task in tasks:
        if held and sum(map(_rows, held)) + _rows(task) > quota:
            yield tuple(held)
            held = []
        held.append(task)
    if held:
        yield tuple(held)


def _rows(task: ChangeTask) -> int:
    side = task.side if isinstance(task, RowsTask) else task.after
    # Opening files has a cost too.
    return _LEAST_ROWS // 8 + (side.fragment.physical_rows or 0)
