"""CreateIndex: index entries added and removed."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format.index_meta import MEM_WAL, IndexMetadata
from lancelake.format.merged_generation import MergedGeneration
from lancelake.txn import index_coverage, merged_generations, overlap
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    REBASE,
    Context,
    Incompatible,
    Rebasing,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
)


def apply(op: ops.CreateIndex, head: TableState, target: VersionTarget) -> TableState:
    """Remove the old entries and add the new ones."""
    gone = {i.uuid for i in (*op.removed_indices, *op.new_indices)}
    remaining = (i for i in head.indices if i.uuid not in gone)
    after = replace(head, indices=(*remaining, *op.new_indices))
    return merged_generations.with_catchup(after, (*op.removed_indices, *op.new_indices), target)


def conflicts(op: ops.CreateIndex, theirs: ops.Operation, context: Context) -> Verdict:
    """Check an index: compatible while its columns stay in the files that were read."""
    match theirs:
        case ops.CreateIndex():
            return _same_names(op, theirs)
        case ops.Rewrite():
            return overlap.covers_rewritten(op.new_indices, overlap.rewritten(theirs))
        case ops.DataReplacement():
            shared = overlap.indexed_fields(op) & overlap.replaced_fields(theirs)
            return Retryable("an indexed column was replaced") if shared else OK
        case ops.UpdateMemWalState():
            writes_mem_wal = any(i.name == MEM_WAL for i in op.new_indices)
            return REBASE if writes_mem_wal else Incompatible("the state of the MemWAL changed")
        case ops.Merge() | ops.Project() | ops.Update():
            return _on_current_columns(op, context)
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.Delete()
            | ops.ReserveFragments()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def rebase(op: ops.CreateIndex, rebasing: Rebasing) -> ops.CreateIndex | Retryable:
    """Remove rewritten columns from the coverage of new entries, and keep MemWAL progress."""
    pruned = index_coverage.without_changed_columns(
        op.new_indices,
        rebasing.head.manifest.schema,
        before=rebasing.base.fragments_by_id(),
        after=rebasing.head.fragments_by_id(),
    )
    entries = (_with_progress(i, rebasing.head) for i in pruned)
    return replace(op, new_indices=tuple(entries))


def _same_names(op: ops.CreateIndex, theirs: ops.CreateIndex) -> Verdict:
    new, removed = _names(theirs.new_indices), _names(theirs.removed_indices)
    shared = _names(op.new_indices) & (new | removed) | _names(op.removed_indices) & new
    return Retryable(f"index {', '.join(sorted(shared))} was changed") if shared else OK


def _names(indices: tuple[IndexMetadata, ...]) -> set[str]:
    return {i.name for i in indices}


def _on_current_columns(op: ops.CreateIndex, context: Context) -> Verdict:
    fields = context.theirs_after.manifest.schema.by_id()
    for index in op.new_indices:
        if not all(f in fields for f in index.fields):
            return Retryable(f"a column of index {index.name!r} no longer exists")
    pruned = index_coverage.without_changed_columns(
        op.new_indices,
        context.theirs_after.manifest.schema,
        before=context.base.fragments_by_id(),
        after=context.theirs_after.fragments_by_id(),
    )
    return OK if pruned == op.new_indices else REBASE


def _with_progress(index: IndexMetadata, head: TableState) -> IndexMetadata:
    current = head.index_named(MEM_WAL)
    if index.name != MEM_WAL or current is None:
        return index
    reached = merged_generations.progress_of(current).items()
    marks = (MergedGeneration(region_id=r, generation=g) for r, g in reached)
    return merged_generations.with_progress(index, marks)


RULES: Rules[ops.CreateIndex] = Rules(apply=apply, conflicts=conflicts, rebase=rebase)
