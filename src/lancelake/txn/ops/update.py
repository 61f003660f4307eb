"""Update: rows moved to new fragments, or columns rewritten in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format import updated_offsets
from lancelake.format.fragment import Fragment
from lancelake.format.operations.update import UpdateMode
from lancelake.format.primary_key import KeyExistenceFilter
from lancelake.txn import (
    fragments,
    index_coverage,
    inserted_keys,
    key_bloom,
    merged_generations,
    overlap,
    row_id_assignment,
)
from lancelake.txn.options import TableState
from lancelake.txn.overlap import changed_rows, rebased_rows
from lancelake.txn.rules import (
    OK,
    Compatible,
    Context,
    Incompatible,
    Rebasing,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
)


def apply(op: ops.Update, head: TableState, target: VersionTarget) -> TableState:
    """Replace fragments; moved rows keep their ids, and index coverage is updated."""
    before = head.manifest
    added = fragments.numbered(op.new_fragments, fragments.next_id(before))
    indices = _indices_after(op, head, added)
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        current = head.fragments_by_id()
        assigned = row_id_assignment.for_moved_rows(
            added,
            sources=[current[i] for i in overlap.touched(op).all if i in current],
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
        indices=merged_generations.advanced(after.indices, op.merged_generations, target),
    )


def conflicts(op: ops.Update, theirs: ops.Operation, context: Context) -> Verdict:
    """Check an update: rows must stay in their fragments, inserted keys must be new."""
    match theirs:
        case ops.Append():
            return _against_added_keys(op, theirs.fragments, context)
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
            return merged_generations.judged(op.merged_generations, theirs.merged_generations)
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
    """Merge the deletions of my moved rows into theirs."""
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
    verdict = _same_keys(op, theirs, context)
    if isinstance(verdict, Compatible):
        verdict = merged_generations.judged(op.merged_generations, theirs.merged_generations)
    if isinstance(verdict, Compatible):
        verdict = overlap.on_same_rows(op, theirs, context)
    return verdict


def _same_keys(op: ops.Update, theirs: ops.Update, context: Context) -> Verdict:
    """Check the rows that theirs wrote, unless the recorded keys are enough."""
    if op.inserted_rows is None:
        return OK
    if set(op.inserted_rows.field_ids) & set(theirs.fields_modified):
        return Retryable("key columns were rewritten")
    if _are_disjoint(op.inserted_rows, theirs, context):
        return OK
    return _against_added_keys(op, theirs.new_fragments, context)


def _are_disjoint(mine: KeyExistenceFilter, theirs: ops.Update, context: Context) -> bool:
    """Whether recorded keys show that both inserted different ones."""
    others = theirs.inserted_rows
    if others is None or key_bloom.may_intersect(mine, others):
        return False
    return not (theirs.new_fragments and inserted_keys.may_be_unrecorded(others, context))


def _against_added_keys(op: ops.Update, added: Sequence[Fragment], context: Context) -> Verdict:
    if op.inserted_rows is None:
        return OK
    has_rows = bool(op.new_fragments)
    return inserted_keys.judged(op.inserted_rows, has_rows=has_rows, added=added, context=context)


def _replaced(theirs: ops.Overwrite | ops.Restore | ops.UnknownOperation) -> Verdict:
    if isinstance(theirs, ops.UnknownOperation):
        return Incompatible("an operation of a newer release")
    return Incompatible("the table was replaced")


def _dated(op: ops.Update, target: VersionTarget) -> tuple[Fragment, ...]:
    """Set the version of rows whose columns were rewritten before it was known."""
    offsets = updated_offsets.decode(op.unknown)
    return tuple(
        row_id_assignment.touched_rows(f, overlap.as_bitmap(offsets[f.id]), target.version)
        if f.id in offsets
        else f
        for f in op.updated_fragments
    )


def _indices_after(
    op: ops.Update, head: TableState, added: tuple[Fragment, ...]
) -> index_coverage.Indices:
    updated = [f.id for f in op.updated_fragments]
    schema = head.manifest.schema
    modified = index_coverage.with_members(schema, op.fields_modified)
    indices = index_coverage.without_fragments(head.indices, modified, updated)
    by_rows = op.update_mode is UpdateMode.REWRITE_ROWS
    if not (head.manifest.has_stable_row_ids and by_rows and op.fields_for_preserving_frag_bitmap):
        return indices
    return index_coverage.extended_by_moved_rows(
        indices,
        sources=overlap.touched(op).all,
        moved_to=[f.id for f in added if row_id_assignment.has_all_row_ids(f)],
        changed_fields=index_coverage.with_members(schema, op.fields_for_preserving_frag_bitmap),
    )


RULES: Rules[ops.Update] = Rules(apply=apply, conflicts=conflicts, rebase=rebase)
