"""Streaming source: changes of a table in micro-batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lancelake.core.table import Table
from lancelake.core.values.metadata import (
    Fragment,
    Operation,
    ReserveFragments,
    Rewrite,
    Snapshot,
    UpdateConfig,
)
from lancelake.core.values.reads import ScanRequest
from lancelake.core.values.tasks import (
    ChangeTask,
    RowsTask,
    ScanTask,
    SplitLimits,
    execute_changes,
    execute_scan,
    pack,
)
from lancelake.core.values.versions import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    FEED_NAMES,
    AsOf,
    AtVersion,
    ChangeKind,
    ChangeRequest,
    Latest,
)
from lancelake.errors import InvalidRequestError, UnsupportedError, VersionNotFoundError
from lancelake.spark.streaming.identity import (
    FieldIds,
    Identity,
    Offset,
    ReadPaths,
    ensure_same_columns,
    expected_ids,
    read_paths,
)
from lancelake.spark.tasks.columns import SparkConformer
from lancelake.spark.values.options import TableOptions, parse_time
from lancelake.spark.values.spark_types import arrow_schema

# The plain source does not know the number of cores of the session.
_CORES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """Rows of one part, in the Arrow types that Spark expects."""

    task: ScanTask | ChangeTask
    schema: pa.Schema
    commit_version: int
    commit_ns: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        conform = SparkConformer(self.schema, fills=True)
        if isinstance(self.task, ScanTask):
            yield from (conform(self._as_inserts(batch)) for batch in execute_scan(self.task))
        else:
            yield from map(conform, execute_changes(self.task))

    @property
    def fragment(self) -> Fragment:
        """The fragment that the part reads."""
        return self.task.fragment

    @property
    def rows(self) -> int:
        """Number of rows the part reads, an upper bound of those it returns."""
        return self.fragment.physical_rows or 0

    @property
    def size_bytes(self) -> int:
        """Size of the files with these rows."""
        return sum(file.file_size_bytes or 0 for file in self.fragment.files)

    def _as_inserts(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the change feed columns if requested: rows of a snapshot are inserts."""
        values = {
            CHANGE_TYPE: pa.scalar(ChangeKind.INSERT.value),
            COMMIT_VERSION: pa.scalar(self.commit_version, pa.int64()),
            COMMIT_TIMESTAMP: pa.scalar(self.commit_ns // 1000, pa.timestamp("us", "UTC")),
        }
        for name, value in values.items():
            if name in self.schema.names and name not in batch.schema.names:
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
        return batch


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPartition:
    """Input of one task: parts, whose rows are returned in their order."""

    parts: tuple[StreamPart, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for part in self.parts:
            yield from part.batches()


def pack_parts(parts: Sequence[StreamPart], cores: int = _CORES) -> list[StreamPartition]:
    """Return the input of each task; parts of small fragments share one, as in a batch read."""
    groups = pack(parts, lambda part: part.fragment, SplitLimits(cores=cores))
    return [StreamPartition(parts=group) for group in groups]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContent:
    """The content of a stream: all changes with their kind, or only new rows.

    `skips_changes` skips versions that update or delete rows, with the rows that they insert; a
    stream of new rows otherwise refuses them.
    """

    schema: pa.Schema
    columns: tuple[str, ...]
    with_changes: bool = False
    skips_changes: bool = False

    @property
    def paths(self) -> ReadPaths:
        """The paths of the requested columns and of their struct fields."""
        own = set(self.columns)
        return read_paths(pa.schema([field for field in self.schema if field.name in own]))

    def columns_of(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Return the requested columns that a version has."""
        present = set(snapshot.manifest.schema.names)
        return tuple(name for name in self.columns if name in present)


def snapshot_parts(snapshot: Snapshot, wanted: StreamContent) -> list[StreamPart]:
    """Return parts with all rows of a version."""
    request = ScanRequest(columns=wanted.columns_of(snapshot))
    return [_part(task, snapshot, wanted) for task in Table(snapshot).plan(request).tasks]


def version_parts(before: Snapshot, after: Snapshot, wanted: StreamContent) -> list[StreamPart]:
    """Return parts with the changes of a version."""
    if not after.manifest.has_stable_row_ids and not wanted.with_changes:
        return _appended_parts(before, after, wanted)
    request = ChangeRequest(columns=wanted.columns_of(after))
    begin, end = AtVersion(before.version), AtVersion(after.version)
    tasks = Table(after).history.changes(begin, end, request).tasks
    if not wanted.with_changes and not all(map(_is_new, tasks)):
        if not wanted.skips_changes:
            raise _has_changes(after)
        return []
    return [_part(task, after, wanted) for task in tasks]


def _is_new(task: ChangeTask) -> bool:
    return isinstance(task, RowsTask) and task.kind is ChangeKind.INSERT


def _appended_parts(before: Snapshot, after: Snapshot, wanted: StreamContent) -> list[StreamPart]:
    """Return parts with the new fragments of a table without stable row ids."""
    transaction = after.transaction
    operation: Operation | None = None if transaction is None else transaction.operation
    if isinstance(operation, Rewrite | ReserveFragments | UpdateConfig):
        return []
    earlier = {fragment.id: fragment for fragment in before.manifest.fragments}
    new = [fragment.id for fragment in after.manifest.fragments if fragment.id not in earlier]
    both = [f for f in after.manifest.fragments if f.id in earlier]
    changed = len(both) < len(earlier) or any(
        earlier[f.id].deletion_file != f.deletion_file for f in both
    )
    if changed:
        if not wanted.skips_changes:
            raise _has_changes(after)
        return []
    request = ScanRequest(columns=wanted.columns_of(after), fragment_ids=tuple(new))
    return [_part(task, after, wanted) for task in Table(after).plan(request).tasks]


def _part(task: ScanTask | ChangeTask, snapshot: Snapshot, wanted: StreamContent) -> StreamPart:
    return StreamPart(
        task=task,
        schema=wanted.schema,
        commit_version=snapshot.version,
        commit_ns=snapshot.manifest.timestamp_ns or 0,
    )


def _has_changes(after: Snapshot) -> UnsupportedError:
    return UnsupportedError(
        f"version {after.version} updated or deleted rows, which a stream of appended "
        "rows does not support",
        table=after.location.uri,
        version=after.version,
        action="Set readChangeFeed=true to read changes, or skipChangeCommits=true to skip them.",
    )


@dataclass(slots=True, kw_only=True)
class Allowance:
    """Remaining limits of a batch; None is unlimited. The first part is always allowed."""

    versions: int | None = None
    files: int | None = None
    rows: int | None = None
    size_bytes: int | None = None
    is_fresh: bool = True

    def begin_version(self) -> bool:
        """Whether one more version may be started."""
        if self.versions is None:
            return True
        self.versions -= 1
        return self.versions >= 0

    def take(self, parts: Sequence[StreamPart]) -> int:
        """Return how many of these parts, from the first, are within the limits."""
        for count, part in enumerate(parts):
            if not self._fits(part):
                return count
            self.is_fresh = False
            self.files = _less(self.files, 1)
            self.rows = _less(self.rows, part.rows)
            self.size_bytes = _less(self.size_bytes, part.size_bytes)
        return len(parts)

    def _fits(self, part: StreamPart) -> bool:
        pairs = ((self.files, 1), (self.rows, part.rows), (self.size_bytes, part.size_bytes))
        return self.is_fresh or all(left is None or left >= need for left, need in pairs)


def _less(left: int | None, taken: int) -> int | None:
    return None if left is None else left - taken


LIMITS = (
    "maxBytesPerTrigger",
    "maxFilesPerTrigger",
    "maxRowsPerTrigger",
    "maxVersionsPerTrigger",
)
STREAM_ONLY = (*LIMITS, "skipChangeCommits")
STREAM_OPTIONS = (
    "branch",
    *STREAM_ONLY,
    "readChangeFeed",
    "startingTimestamp",
    "startingVersion",
)
_FEED_SCHEMA = StructType(
    [
        StructField(CHANGE_TYPE, StringType()),
        StructField(COMMIT_VERSION, LongType()),
        StructField(COMMIT_TIMESTAMP, TimestampType()),
    ]
)


def feed_schema(schema: StructType, options: Mapping[str, str]) -> StructType:
    """Return the columns of a stream; with the change feed, including its metadata columns."""
    lowered = {key.lower(): value for key, value in options.items()}
    if lowered.get("readchangefeed", "false").lower() != "true":
        return schema
    return StructType([*schema.fields, *_FEED_SCHEMA.fields])


LATEST = "latest"
"""Value of startingVersion: only changes from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStream:
    """A table, and the content of a stream."""

    options: TableOptions
    wanted: StreamContent

    @staticmethod
    def of(schema: StructType, parsed: TableOptions) -> TableStream:
        """Return the stream that options select."""
        wanted = StreamContent(
            schema=arrow_schema(schema),
            columns=tuple(name for name in schema.fieldNames() if name not in FEED_NAMES),
            with_changes=parsed.flag("readChangeFeed", default=False),
            skips_changes=parsed.flag("skipChangeCommits", default=False),
        )
        return TableStream(options=parsed, wanted=wanted)

    def begin(self) -> Offset:
        """Return the start of a new stream: before all rows, or before a version."""
        starting = self.options.get("startingVersion")
        time = self.options.get("startingTimestamp")
        if starting is not None and time is not None:
            raise InvalidRequestError("startingVersion and startingTimestamp cannot be combined")
        head = self.head()
        if time is not None:
            # Versions committed exactly at that time are included.
            before = AsOf(parse_time(time, head.location.uri).time_us - 1)
            start = Offset(Table(head).history.range(before, None).begin + 1, 0)
        elif starting is None:
            start = Offset(head.version, 0, is_snapshot=True)
        elif starting.lower() == LATEST:
            start = Offset(head.version + 1, 0)
        else:
            start = Offset(self._existing(self.options.whole("startingVersion") or 0, head), 0)
        return self._identify(start, head, expected_ids(head, self.wanted.paths, {}))

    def _existing(self, number: int, head: Snapshot) -> int:
        if number > head.version + 1:
            raise InvalidRequestError(
                f"startingVersion is {number}, but the newest version is {head.version}",
                table=head.location.uri,
                option="startingVersion",
                action=f"Start at {head.version + 1} or before, or at {LATEST}.",
            )
        return number

    def end(self) -> Offset:
        """Return the end of the newest version."""
        head = self.head()
        ids = expected_ids(head, self.wanted.paths, {})
        return self._identify(Offset(head.version + 1, 0), head, ids)

    def head(self) -> Snapshot:
        """Return the newest version."""
        return self.options.open(Latest()).snapshot

    @property
    def limits(self) -> list[str]:
        """The options that limit a batch."""
        return [name for name in LIMITS if self.options.get(name) is not None]

    def allowance(self) -> Allowance:
        """Return the limits of a batch."""
        return Allowance(
            versions=self.options.positive("maxVersionsPerTrigger"),
            files=self.options.positive("maxFilesPerTrigger"),
            rows=self.options.positive("maxRowsPerTrigger"),
            size_bytes=self.options.positive("maxBytesPerTrigger"),
        )

    def reach(self, start: Offset, last: int, allowed: Allowance) -> Offset:
        """Return the end of a batch; unchanged if there is nothing to read."""
        head, ids = self._check(start)
        at = start
        while at.version <= last and allowed.begin_version():
            ahead = self._parts(at, ids)[at.done :]
            count = allowed.take(ahead)
            if count < len(ahead):
                at = Offset(at.version, at.done + count, at.is_snapshot)
                break
            at = Offset(at.version + 1, 0)
        return start if at == start else self._identify(at, head, ids)

    def between(self, start: Offset, end: Offset) -> list[StreamPart]:
        """Return the parts from one offset to another."""
        head, ids = self._check(start)
        if end.identity is not None:
            end.identity.ensure_same_table(head)
        parts: list[StreamPart] = []
        at = start
        while at.version < end.version:
            parts += self._parts(at, ids)[at.done :]
            at = Offset(at.version + 1, 0)
        if end.done:
            parts += self._parts(end, ids)[at.done : end.done]
        return parts

    def _check(self, start: Offset) -> tuple[Snapshot, FieldIds]:
        """Open the table of an offset; return its newest version and the column ids."""
        head, identity = self.head(), start.identity
        if identity is not None:
            identity.ensure_same_table(head)
        recorded = {} if identity is None else identity.fields
        return head, expected_ids(head, self.wanted.paths, recorded)

    def _identify(self, at: Offset, head: Snapshot, ids: FieldIds) -> Offset:
        """Return an offset with the identity of its table."""
        seen = head
        if 1 <= at.last_seen < head.version:
            # A version that was cleaned up cannot identify the table; the newest can.
            with contextlib.suppress(VersionNotFoundError):
                seen = self._version(at.last_seen)
        return replace(at, identity=Identity.of(seen, ids))

    def _parts(self, at: Offset, ids: FieldIds) -> list[StreamPart]:
        """Return all parts of a version."""
        if at.version < 1:
            return []
        after = self._version(at.version)
        if at.is_snapshot or at.version == 1:
            ensure_same_columns(ids, None, after)
            return snapshot_parts(after, self.wanted)
        before = self._version(at.version - 1)
        ensure_same_columns(ids, before, after)
        return version_parts(before, after, self.wanted)

    def _version(self, number: int) -> Snapshot:
        head = self.head()
        try:
            return Table(head).at(AtVersion(number)).snapshot
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"the stream has not read version {number} yet, but it was cleaned up",
                table=head.location.uri,
                version=number,
                action=(
                    "Retain versions for longer than a stream may be stopped, or restart it "
                    "with a new checkpoint."
                ),
            ) from error
