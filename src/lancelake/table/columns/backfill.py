"""Write new columns with one task per fragment and commit them; retries reuse written files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.data.column_file import ColumnFile, with_file
from lancelake.data.storable import is_for_newest_readers
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Job, Progress
from lancelake.errors import UnsupportedError
from lancelake.format.evolution import forbids_more_nulls
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.operations import Merge
from lancelake.format.schema import Schema
from lancelake.table.column_task import ColumnTask, written_file
from lancelake.table.columns.syncing import Syncing
from lancelake.table.conflict_retry import Retries, until_it_lands
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.txn.fragments import without_dropped_files

# A retry reuses the files already written, so it need not be early. Only the first attempt is long:
# a delay in proportion to it would be far too long.
PATIENCE = Retries(timeout_s=float("inf"), longest_wait_s=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """The next schema, and for each fragment the task that writes its new columns."""

    schema: Schema
    tasks: Sequence[ColumnTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """How columns are computed and committed."""

    engine: Engine
    choices: CommitChoices = DEFAULT_CHOICES
    progress: Progress | None = None
    _written: dict[object, DataFile | None] = field(default_factory=dict)

    def run(self, base: Snapshot, plan: Callable[[Snapshot], ColumnPlan]) -> Snapshot:
        """Write the columns and commit; after a conflict, only rows in other files are written."""

        def attempt(at: Snapshot) -> Snapshot:
            planned = plan(at)
            files = self.write(at, planned.tasks)
            return publish_columns(at, planned.schema, files, self.choices)

        return until_it_lands(base, attempt, PATIENCE, self.choices.surroundings)

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


def default_engine() -> Engine:
    """Return an engine for this process with one task more than processors, to overlap I/O."""
    return LocalEngine(parallelism=1 + (os.cpu_count() or 1))


@names_table
def publish_columns(
    base: Snapshot,
    schema: Schema,
    files: Mapping[FragmentId, DataFile | None],
    choices: CommitChoices,
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
    return publish(base, new_transaction(operation, base.version, choices), choices)


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
