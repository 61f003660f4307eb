"""Update: rows moved to new fragments, or columns rewritten in place."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format import updated_offsets
from lancelake.format.fragment import Fragment
from lancelake.format.key_filter import KeyExistenceFilter
from lancelake.format.operations.update import UpdateMode
from lancelake.format.schema import Schema
from lancelake.txn import fragments, index_upkeep, key_bloom, key_bytes, mem_wal, overlap, row_ids
from lancelake.txn.row_changes import changed_rows, rebased_rows
from lancelake.txn.rules import (
    OK,
    Compatible,
    Context,
    Incompatible,
    Rebasing,
    Retryable,
    Rules,
    Target,
    Verdict,
)
from lancelake.txn.state import TableState


def apply(op: ops.Update, head: TableState, target: Target) -> TableState:
    """Exchange fragments; rows that moved keep their ids, and indices follow where they can."""
    before = head.manifest
    added = fragments.numbered(op.new_fragments, fragments.next_id(before))
    indices = _indices_after(op, head, added)
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        left = overlap.touched(op).all
        assigned = row_ids.for_moved_rows(
            added,
            sources=[f for f in before.fragments if f.id in left],
            next_row_id=next_row_id,
            version=target.version,
        )
        added, next_row_id = assigned.fragments, assigned.next_row_id
    after = changed_rows(
        replace(head, indices=indices),
        updated=_dated(op, target),
        removed=op.removed_fragment_ids,
        added=added,
    )
    return TableState(
        manifest=replace(after.manifest, next_row_id=next_row_id),
        indices=mem_wal.advanced(after.indices, op.merged_generations, target),
    )


def conflicts(op: ops.Update, theirs: ops.Operation, context: Context) -> Verdict:
    """Rows can be changed where they lay; inserted keys must not have been inserted before."""
    match theirs:
        case ops.Append():
            has_keys = op.inserted_rows is not None
            return Retryable("appended rows may have the same keys") if has_keys else OK
        case ops.Update():
            return _against_update(op, theirs, context)
        case ops.Delete():
            return overlap.on_same_rows(op, theirs, context)
        case ops.DataReplacement() | ops.Rewrite():
            return _against_files(op, theirs)
        case ops.Merge():
            return Retryable("every fragment was rewritten")
        case ops.Project():
            changes = overlap.changes_field_rules(theirs)
            return Retryable("the schema changed") if changes else OK
        case ops.UpdateMemWalState():
            return mem_wal.judged(op.merged_generations, theirs.merged_generations)
        case ops.Overwrite() | ops.Restore() | ops.UnknownOperation():
            return _replaced(theirs)
        case (
            ops.Clone()
            | ops.CreateIndex()
            | ops.ReserveFragments()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def rebase(op: ops.Update, rebasing: Rebasing) -> ops.Update | Retryable:
    """Put the deletions of the rows I moved on top of theirs."""
    rebased = rebased_rows(op.updated_fragments, op.removed_fragment_ids, rebasing)
    if isinstance(rebased, Retryable):
        return rebased
    return replace(op, updated_fragments=rebased.updated, removed_fragment_ids=rebased.removed)


def _against_files(op: ops.Update, theirs: ops.DataReplacement | ops.Rewrite) -> Verdict:
    mine = overlap.touched(op).all
    if isinstance(theirs, ops.Rewrite):
        gone = overlap.rewritten(theirs)
        return overlap.on_same_fragments(mine, gone, what="rows moved to other files")
    changed = overlap.replaced(theirs)
    return overlap.on_same_fragments(mine, changed, what="a column was replaced")


def _against_update(op: ops.Update, theirs: ops.Update, context: Context) -> Verdict:
    verdict = _same_keys(op, theirs, context.base.manifest.schema)
    if isinstance(verdict, Compatible):
        verdict = mem_wal.judged(op.merged_generations, theirs.merged_generations)
    if isinstance(verdict, Compatible):
        verdict = overlap.on_same_rows(op, theirs, context)
    return verdict


def _same_keys(op: ops.Update, theirs: ops.Update, schema: Schema) -> Verdict:
    if op.inserted_rows is None:
        return OK
    if theirs.inserted_rows is None:
        return Retryable("it is not known which keys were inserted")
    if _may_be_unrecorded(theirs, theirs.inserted_rows, schema):
        return Retryable("inserted keys of this type may not have been recorded")
    if key_bloom.may_intersect(op.inserted_rows, theirs.inserted_rows):
        return Retryable("both may have inserted the same keys")
    return OK


def _may_be_unrecorded(theirs: ops.Update, keys: KeyExistenceFilter, schema: Schema) -> bool:
    """Whether rows came in under an empty filter, which official releases write for some types."""
    fields = schema.by_id()
    types = (fields[i].logical_type for i in keys.field_ids if i in fields)
    return (
        bool(theirs.new_fragments)
        and key_bloom.is_empty(keys)
        and not all(key_bytes.recorded_by_all(t) for t in types)
    )


def _replaced(theirs: ops.Overwrite | ops.Restore | ops.UnknownOperation) -> Verdict:
    if isinstance(theirs, ops.UnknownOperation):
        return Incompatible("an operation of a newer release")
    return Incompatible("the table was replaced")


def _dated(op: ops.Update, target: Target) -> tuple[Fragment, ...]:
    """Date the rows whose columns were rewritten: when they were, the version was not known."""
    offsets = updated_offsets.decode(op.unknown)
    return tuple(
        row_ids.touched_rows(f, overlap.as_bitmap(offsets[f.id]), target.version)
        if f.id in offsets
        else f
        for f in op.updated_fragments
    )


def _indices_after(
    op: ops.Update, head: TableState, added: tuple[Fragment, ...]
) -> index_upkeep.Indices:
    updated = [f.id for f in op.updated_fragments]
    indices = index_upkeep.without_fragments(head.indices, op.fields_modified, updated)
    by_rows = op.update_mode is UpdateMode.REWRITE_ROWS
    if not (head.manifest.has_stable_row_ids and by_rows and op.fields_for_preserving_frag_bitmap):
        return indices
    return index_upkeep.extended_by_moved_rows(
        indices,
        sources=overlap.touched(op).all,
        moved_to=[f.id for f in added if row_ids.has_all_row_ids(f)],
        changed_fields=op.fields_for_preserving_frag_bitmap,
    )


RULES: Rules[ops.Update] = Rules(apply=apply, conflicts=conflicts, rebase=rebase)
