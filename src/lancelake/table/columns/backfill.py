"""Writing new columns of all fragments, and their commit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.column_file import ColumnFile, sync_file, sync_names, with_file
from lancelake.data.fragment_reader import load_deletions, physical_rows
from lancelake.data.schema_check import is_for_newest_readers
from lancelake.engine.port import Engine, Job, LocalEngine, Progress
from lancelake.errors import LanceTableError, UnsupportedError
from lancelake.format.evolution import forbids_more_nulls
from lancelake.format.fragment import DataFile, Fragment, from_bytes, to_bytes
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import Merge
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanTask
from lancelake.storage.location import Location
from lancelake.table import publish
from lancelake.threads import Future, Pool, usable_cores
from lancelake.txn.fragments import without_dropped_files

# Disks write the files of several sync calls in parallel.
_FILES_AT_ONCE = 16


class Syncing:
    """Syncs files written below a root; all are durable when the context exits."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._pool = Pool(_FILES_AT_ONCE)
        self._started: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def add(self, file: DataFile | None) -> None:
        """Start syncing a file."""
        self._started.append(self._pool.submit(sync_file, self._root, file))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for all files, then for their folder entries; after an error for none."""
        self._pool.close(cancels=kind is not None)
        if kind is None:
            for future in self._started:
                future.result()
            sync_names(self._root)


_TASK_BYTES = 256 << 20


class Values(Protocol):
    """Source of values for a fragment's live rows; a frozen, picklable value."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values in row order."""


class Keeper(Protocol):
    """Storage of results until they are committed."""

    def kept(self, scan: ScanTask) -> bytes | None:
        """Return the stored result of an earlier run over the same rows, if any."""

    def keep(self, scan: ScanTask, result: bytes) -> None:
        """Store the result of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTask:
    """One data file with new columns for the fragment of a scan."""

    scan: ScanTask
    values: Values
    file: ColumnFile
    keeper: Keeper | None = None

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the file and return its entry."""
        spec, fragment = self.scan.spec, self.scan.fragment
        kept = None if self.keeper is None else self.keeper.kept(self.scan)
        if kept is not None:
            return kept
        try:
            entry = self.file.write(
                self.values.batches(self.scan),
                self.values.schema,
                deleted=load_deletions(spec.files, fragment),
                physical_rows=physical_rows(spec.files, spec.manifest_at, fragment),
            )
        except LanceTableError as error:
            raise error.at(spec.files.root.uri, spec.version) from error.__cause__
        result = written(fragment, entry)
        if self.keeper is not None:
            self.keeper.keep(self.scan, result)
        return result


def written(fragment: Fragment, entry: DataFile | None) -> bytes:
    """Encode the file that was written for a fragment, if any."""
    return to_bytes([Fragment(id=fragment.id, files=() if entry is None else (entry,))])


def written_file(result: bytes) -> DataFile | None:
    """Decode the output of `written`."""
    (fragment,) = from_bytes(result)
    return fragment.files[0] if fragment.files else None


# A retry reuses the files already written, so it need not be early. Only the first attempt is long:
# a delay in proportion to it would be far too long.
PATIENCE = publish.Retries(timeout_s=float("inf"), longest_wait_s=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """The next schema, and for each fragment the task that writes its new columns."""

    schema: Schema
    tasks: Sequence[ColumnTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """How columns are computed and committed."""

    engine: Engine
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES
    progress: Progress | None = None
    _written: dict[object, DataFile | None] = field(default_factory=dict)

    def run(self, base: Snapshot, plan: Callable[[Snapshot], ColumnPlan]) -> Snapshot:
        """Write the columns and commit; after a conflict, only rows in other files are written."""
        choices = self.choices.named("ADD COLUMNS", base.location)

        def attempt(at: Snapshot) -> Snapshot:
            planned = plan(at)
            files = self.write(at, planned.tasks)
            return publish_columns(at, planned.schema, files, choices)

        return publish.retry_on_newest(base, attempt, PATIENCE)

    def write(
        self, base: Snapshot, tasks: Sequence[ColumnTask]
    ) -> dict[FragmentId, DataFile | None]:
        """Run the tasks without a known result, and return the file of each fragment."""
        missing = [task for task in tasks if _key(task) not in self._written]
        job = Job(
            description=f"add columns to {base.location.uri}",
            tasks=missing,
            progress=self.progress,
        )
        with Syncing(base.location) as syncing:
            for task, result in zip(missing, self.engine.run(job), strict=True):
                self._written[_key(task)] = file = written_file(result)
                syncing.add(file)
        return {task.scan.fragment.id: self._written[_key(task)] for task in tasks}


def default_engine(base: Snapshot) -> Engine:
    """Return the session's engine, else threads: one more than processors, to overlap I/O."""
    return base.location.session.engine or LocalEngine(parallelism=1 + usable_cores())


def publish_columns(
    base: Snapshot,
    schema: Schema,
    files: Mapping[FragmentId, DataFile | None],
    choices: publish.CommitChoices,
) -> Snapshot:
    """Commit a schema and the files that were written for it."""
    fields = schema.by_id()
    fragments = tuple(
        without_dropped_files(_with(fragment, files.get(fragment.id)), fields)
        for fragment in base.manifest.fragments
    )
    operation = Merge(
        fragments=fragments,
        schema=schema,
        preserves_nullability=not forbids_more_nulls(base.manifest.schema, schema),
    )
    return publish.publish(base, operation, choices)


def column_file(base: Snapshot, schema: Schema, *, casts: bool = False) -> ColumnFile:
    """Return the file settings of columns of a table; refuse new ones of a table with a MemWAL."""
    _ensure_unmerged_rows_have(base, schema)
    version = base.manifest.data_version
    columns = replace(schema, metadata=base.manifest.schema.metadata)
    return ColumnFile(
        root=base.location,
        schema=columns,
        version=version,
        casts=casts,
        newest_readers_only=is_for_newest_readers(base.manifest.schema, version),
        declared_bases=base.manifest.base_paths,
    )


def _ensure_unmerged_rows_have(base: Snapshot, schema: Schema) -> None:
    known = base.manifest.schema.by_id()
    new = [field.name for field in schema.walk() if field.id not in known]
    if new and any(index.name == MEM_WAL for index in base.indices):
        raise UnsupportedError(
            f"column {new[0]} cannot be filled with values while the table has a MemWAL, whose "
            "rows do not have them",
            table=base.location.uri,
            column=new[0],
            action="Add a column of nulls and update it, or drop the MemWAL after a merge.",
        )


def _with(fragment: Fragment, file: DataFile | None) -> Fragment:
    return fragment if file is None else with_file(fragment, file)


def _key(task: ColumnTask) -> object:
    """Return a key of rows that have the same values; deleted rows do not count."""
    return task.scan.fragment.id, task.scan.fragment.files, task.file.schema.fields
