"""Split the rows and changes of a version into parts that executors read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import UnsupportedError
from lancelake.format.fragment import Fragment
from lancelake.format.operations import Operation, ReserveFragments, Rewrite, UpdateConfig
from lancelake.scan.execute import execute as execute_scan
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan as plan_scan
from lancelake.scan.request import ScanRequest
from lancelake.spark.reading.spark_values import SparkConformer
from lancelake.spark.streaming.identity import ReadPaths, read_paths
from lancelake.table.change_feed.execute import execute as execute_change
from lancelake.table.change_feed.planner import plan_changes
from lancelake.table.change_feed.request import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    ChangeKind,
    ChangeRequest,
)
from lancelake.table.change_feed.tasks import ChangeTask, RowsTask
from lancelake.table.open import AtVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """Rows of one part, in the Arrow types that Spark expects."""

    task: ScanTask | ChangeTask
    schema: pa.Schema
    commit_version: int
    commit_ns: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        conform = SparkConformer(self.schema)
        if isinstance(self.task, ScanTask):
            for batch in execute_scan(self.task):
                yield conform(self._with_later_columns(self._as_inserts(batch)))
        else:
            for batch in execute_change(self.task):
                yield conform(self._with_later_columns(batch))

    @property
    def rows(self) -> int:
        """Number of rows the part reads, an upper bound of those it returns."""
        return self._fragment.physical_rows or 0

    @property
    def size_bytes(self) -> int:
        """Size of the files with these rows."""
        return sum(file.file_size_bytes or 0 for file in self._fragment.files)

    @property
    def _fragment(self) -> Fragment:
        match self.task:
            case ScanTask():
                return self.task.fragment
            case RowsTask():
                return self.task.side.fragment
            case _:
                return self.task.after.fragment

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

    def _with_later_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add columns that the version did not have yet."""
        for field in self.schema:
            if field.name not in batch.schema.names:
                nulls = pa.nulls(batch.num_rows, field.type)
                batch = batch.append_column(field.with_nullable(True), nulls)
        return batch


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
    return [_part(task, snapshot, wanted) for task in plan_scan(snapshot, request).tasks]


def version_parts(before: Snapshot, after: Snapshot, wanted: StreamContent) -> list[StreamPart]:
    """Return parts with the changes of a version."""
    if not after.manifest.has_stable_row_ids and not wanted.with_changes:
        return _appended_parts(before, after, wanted)
    request = ChangeRequest(columns=wanted.columns_of(after))
    begin, end = AtVersion(before.version), AtVersion(after.version)
    tasks = plan_changes(after, begin, end, request).tasks
    if not wanted.with_changes and not all(map(_is_new, tasks)):
        if not wanted.skips_changes:
            raise _has_changes(after)
        return []
    return [_part(task, after, wanted) for task in tasks]


def _is_new(task: ChangeTask) -> bool:
    return isinstance(task, RowsTask) and task.kind is ChangeKind.INSERT


def _appended_parts(before: Snapshot, after: Snapshot, wanted: StreamContent) -> list[StreamPart]:
    """Return parts with the new fragments of a table without stable row ids."""
    made_by = after.transaction
    operation: Operation | None = None if made_by is None else made_by.operation
    if isinstance(operation, Rewrite | ReserveFragments | UpdateConfig):
        return []
    known = {fragment.id: fragment for fragment in before.manifest.fragments}
    new = [fragment.id for fragment in after.manifest.fragments if fragment.id not in known]
    kept = [f for f in after.manifest.fragments if f.id in known]
    changed = len(kept) < len(known) or any(
        known[f.id].deletion_file != f.deletion_file for f in kept
    )
    if changed:
        if not wanted.skips_changes:
            raise _has_changes(after)
        return []
    request = ScanRequest(columns=wanted.columns_of(after), fragment_ids=tuple(new))
    return [_part(task, after, wanted) for task in plan_scan(after, request).tasks]


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
