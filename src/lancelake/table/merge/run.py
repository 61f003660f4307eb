"""Run and commit a merge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from lancelake.commit.snapshot import Snapshot, names_table
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine, Progress
from lancelake.format.fragment import Fragment
from lancelake.format.operations import Update
from lancelake.format.transaction import Transaction
from lancelake.table.conflict_retry import DEFAULT, Retries, racing, until_it_lands
from lancelake.table.merge.clauses import MergeSpec
from lancelake.table.merge.plan import MergePlan, find_outcome
from lancelake.table.merge.source import MEMORY_BYTES, SourceRows, kept
from lancelake.table.merge.write import write_merged
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices, new_transaction, publish
from lancelake.table.row_steps.files import row_files
from lancelake.table.row_steps.mark_deleted import ChangedFragments, mark_deleted_during
from lancelake.table.write import widened, widened_schema
from lancelake.txn.inserted_keys import InsertedKeys
from lancelake.txn.rules import AffectedRows


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeCounts:
    """How many rows a merge changed."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A merge that is ready to be committed."""

    transaction: Transaction
    affected: AffectedRows
    inserted_keys: InsertedKeys | None
    counts: MergeCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The version that a merge made."""

    snapshot: Snapshot
    counts: MergeCounts


@names_table
def merge(
    base: Snapshot,
    source: pa.RecordBatchReader,
    spec: MergeSpec,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    retries: Retries = DEFAULT,
    memory_bytes: int = MEMORY_BYTES,
    progress: Progress | None = None,
) -> Merged:
    """Merge rows into a table and commit; after a conflict it is retried on the newest version.

    Only the key columns of the table are read, and those columns of matching rows that the clauses
    need. A source of more than `memory_bytes` is spilled to disk.
    """
    runs_on = engine or LocalEngine()
    with kept(source, memory_bytes=memory_bytes) as rows:

        def work(version: Snapshot) -> Merged:
            if spec.adds_columns:
                version = _with_columns(version, rows, spec, runs_on, choices)
            ready = prepare(version, rows, spec, engine=runs_on, choices=choices, progress=progress)
            chosen = with_changes(racing(choices, retries), ready.affected, ready.inserted_keys)
            made = publish(version, ready.transaction, chosen)
            return Merged(snapshot=made, counts=ready.counts)

        return until_it_lands(base, work, retries, choices.surroundings)


@names_table
def prepare(
    base: Snapshot,
    source: SourceRows,
    spec: MergeSpec,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> Prepared:
    """Perform all steps of a merge except its commit."""
    runs_on = engine or LocalEngine()
    outcome = find_outcome(base, source, spec, runs_on, progress=progress)
    gone, added = mark_deleted_during(
        base,
        outcome.gone,
        choices.surroundings.ids,
        lambda: write_merged(outcome.portions, row_files(base), runs_on, progress=progress),
    )
    operation = replace(
        update_operation(base, gone, added, outcome.inserted_keys),
        merged_generations=spec.merged_generations,
    )
    return Prepared(
        transaction=new_transaction(operation, base.version, choices),
        affected=gone.affected,
        inserted_keys=outcome.inserted_keys,
        counts=_counts(outcome),
    )


def _with_columns(
    base: Snapshot, source: SourceRows, spec: MergeSpec, engine: Engine, choices: CommitChoices
) -> Snapshot:
    """Add the source's columns to the table, once the merge has been validated."""
    schema = widened_schema(base, source.schema)
    if schema == base.manifest.schema:
        return base
    manifest = replace(base.manifest, schema=schema)
    find_outcome(replace(base, file=replace(base.file, manifest=manifest)), source, spec, engine)
    return widened(base, source.schema, choices)


def update_operation(
    base: Snapshot,
    gone: ChangedFragments,
    added: tuple[Fragment, ...],
    inserted_keys: InsertedKeys | None,
) -> Update:
    """Return the operation of a merge that deleted and wrote rows."""
    return Update(
        removed_fragment_ids=gone.removed,
        updated_fragments=gone.updated,
        new_fragments=added,
        fields_for_preserving_frag_bitmap=tuple(f.id for f in base.manifest.schema.fields),
        inserted_rows=None if inserted_keys is None else inserted_keys.recorded,
    )


def with_changes(
    choices: CommitChoices, affected: AffectedRows, inserted_keys: InsertedKeys | None
) -> CommitChoices:
    """Return choices that record the rows a merge deletes, and the keys it inserts."""
    hashes = None if inserted_keys is None else inserted_keys.hashes
    return replace(choices, affected_rows=affected, inserted_keys=hashes)


def _counts(outcome: MergePlan) -> MergeCounts:
    return MergeCounts(inserted=outcome.inserted, updated=outcome.updated, deleted=outcome.deleted)
