"""Rules of the operations that change rows: Append, Delete and Update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from lancelake.errors import CorruptTableError, ObjectNotFoundError
from lancelake.format import operations as ops
from lancelake.format import row_address
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.operations import KeyExistenceFilter, UpdateMode
from lancelake.format.schema import Field
from lancelake.txn import fragments, key_bloom, merged_generations, overlap
from lancelake.txn.options import TableState
from lancelake.txn.overlap import changed_rows, rebased_rows
from lancelake.txn.rules import (
    OK,
    Compatible,
    Context,
    Incompatible,
    Rebasing,
    Relevant,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
)


def apply_append(op: ops.Append, head: TableState, target: VersionTarget) -> TableState:
    """Add the fragments; indices do not cover them."""
    before = head.manifest
    added = fragments.numbered(op.fragments, fragments.next_id(before))
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        fragments.ensure_free(op.fragments, before.fragments)
        assigned = fragments.for_new_rows(added, next_row_id=next_row_id, version=target.version)
        added, next_row_id = assigned.fragments, assigned.next_row_id
    manifest = replace(before, fragments=head.fragments.appended(added), next_row_id=next_row_id)
    return replace(head, manifest=manifest)


def conflicts_append(op: ops.Append, theirs: Relevant, context: Context) -> Verdict:
    """Check an append: compatible while the table's columns keep their constraints."""
    match theirs:
        case ops.Merge() | ops.Project():
            return _against_schema(op, theirs, context)
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def _against_schema(op: ops.Append, theirs: ops.Merge | ops.Project, context: Context) -> Verdict:
    if overlap.changes_field_rules(theirs):
        return Retryable("the schema changed")
    if isinstance(theirs, ops.Merge):
        # A column that was cast has another id: the values to be added would be lost.
        before, after = context.base.manifest.schema.by_id(), theirs.schema.by_id()
        written = {i for f in op.fragments for file in f.files for i in file.fields}
        if any(i in before and i not in after for i in written):
            return Retryable("a column to be written was replaced by another")
    return OK


def unseen_append(op: ops.Append, context: Context) -> Verdict:
    """Check an append: its rows must be valid in the table as it is now."""
    base, after = context.base.manifest, context.theirs_after.manifest
    if base.data_version != after.data_version:
        return Retryable("the version of the data files changed")
    before, now = base.schema.by_id(), after.schema.by_id()
    written = {i for f in op.fragments for file in f.files for i in file.fields if i >= 0}
    is_same = all(
        i in before and i in now and _rules_of(before[i]) == _rules_of(now[i]) for i in written
    )
    if not is_same or any(i not in before and not now[i].nullable for i in now):
        return Retryable("the schema changed")
    return OK


def _rules_of(field: Field) -> object:
    """Return what the values of a field in a data file depend on."""
    kind = (field.logical_type, field.extension_name, field.is_blob_v1)
    return field.name, field.parent_id, field.nullable, kind


APPEND: Rules[ops.Append] = Rules(
    apply=apply_append, conflicts=conflicts_append, unseen=unseen_append
)


def apply_delete(op: ops.Delete, head: TableState, target: VersionTarget) -> TableState:
    """Replace the fragments that lost rows, and remove those that lost all."""
    return changed_rows(head, updated=op.updated_fragments, removed=op.deleted_fragment_ids)


def conflicts_delete(op: ops.Delete, theirs: Relevant, context: Context) -> Verdict:
    """Check a delete: compatible while the rows stay in their fragments."""
    gone = overlap.touched(op).all
    match theirs:
        case ops.Delete() | ops.Update():
            return overlap.on_same_rows(op, theirs, context)
        case ops.Rewrite():
            shared = overlap.rewritten(theirs)
            return overlap.on_same_fragments(gone, shared, what="rows moved to other files")
        case ops.DataReplacement():
            shared = overlap.replaced(theirs)
            return overlap.on_same_fragments(gone, shared, what="a column was replaced")
        case ops.Merge():
            return Retryable("every fragment was rewritten")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.Project()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def rebase_delete(op: ops.Delete, rebasing: Rebasing) -> ops.Delete | Retryable:
    """Merge my deleted rows into theirs."""
    rebased = rebased_rows(op.updated_fragments, op.deleted_fragment_ids, rebasing)
    if isinstance(rebased, Retryable):
        return rebased
    return replace(op, updated_fragments=rebased.updated, deleted_fragment_ids=rebased.removed)


DELETE: Rules[ops.Delete] = Rules(
    apply=apply_delete, conflicts=conflicts_delete, rebase=rebase_delete
)


def apply_update(op: ops.Update, head: TableState, target: VersionTarget) -> TableState:
    """Replace fragments; moved rows keep their ids, and index coverage is updated."""
    before = head.manifest
    added = fragments.numbered(op.new_fragments, fragments.next_id(before))
    indices = _indices_after(op, head, added)
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        current = head.fragments_by_id()
        assigned = fragments.for_moved_rows(
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


def conflicts_update(op: ops.Update, theirs: Relevant, context: Context) -> Verdict:
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
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.Clone() | ops.CreateIndex() | ops.UpdateBases() | ops.UpdateConfig():
            return OK
        case _:
            assert_never(theirs)


def rebase_update(op: ops.Update, rebasing: Rebasing) -> ops.Update | Retryable:
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
    return not (theirs.new_fragments and _may_be_unrecorded(others, context))


def _against_added_keys(op: ops.Update, added: Sequence[Fragment], context: Context) -> Verdict:
    if op.inserted_rows is None:
        return OK
    has_rows = bool(op.new_fragments)
    return _judge_added_keys(op.inserted_rows, has_rows=has_rows, added=added, context=context)


def _replaced(
    theirs: ops.Overwrite | ops.Restore | ops.UnknownOperation,
) -> Verdict:
    return Incompatible("the table was replaced")


def _dated(op: ops.Update, target: VersionTarget) -> tuple[Fragment, ...]:
    """Set the version of rows whose columns were rewritten before it was known."""
    offsets = row_address.decode_offsets(op.unknown)
    return tuple(
        fragments.touched_rows(f, overlap.as_bitmap(offsets[f.id]), target.version)
        if f.id in offsets
        else f
        for f in op.updated_fragments
    )


def _indices_after(
    op: ops.Update, head: TableState, added: tuple[Fragment, ...]
) -> overlap.Indices:
    updated = [f.id for f in op.updated_fragments]
    schema = head.manifest.schema
    modified = overlap.with_members(schema, op.fields_modified)
    indices = overlap.without_fragments(head.indices, modified, updated)
    by_rows = op.update_mode is UpdateMode.REWRITE_ROWS
    if not (head.manifest.has_stable_row_ids and by_rows and op.fields_for_preserving_frag_bitmap):
        return indices
    return overlap.extended_by_moved_rows(
        indices,
        sources=overlap.touched(op).all,
        moved_to=[f.id for f in added if fragments.has_all_row_ids(f)],
        changed_fields=overlap.with_members(schema, op.fields_for_preserving_frag_bitmap),
    )


def _judge_added_keys(
    keys: KeyExistenceFilter, *, has_rows: bool, added: Sequence[Fragment], context: Context
) -> Verdict:
    """Return OK when none of the added rows has a key that mine inserts.

    `has_rows` is set when mine writes rows. Rows that cannot be read count as a conflict.
    """
    exact = context.inserted_keys
    if not added or (exact is not None and not len(exact)):
        return OK
    if exact is None and has_rows and _may_be_unrecorded(keys, context):
        return Retryable("inserted keys of this type may not have been recorded")
    if not set(keys.field_ids) <= {f.id for f in context.theirs_after.manifest.schema.fields}:
        return Retryable("a column of the key no longer exists")
    port = context.key_port
    if port is None or not all(_is_readable(fragment) for fragment in added):
        return Retryable("added rows may have the same keys")
    try:
        for columns in port.key_columns(added, keys.field_ids, context.theirs_after):
            hashes = key_bloom.hashed(keys.field_ids, columns)
            if key_bloom.may_contain(keys, hashes) and (
                exact is None or exact.contains_any(hashes)
            ):
                return Retryable("rows with the same keys were added")
    except (CorruptTableError, ObjectNotFoundError):
        # After a retry, the change reads the newest version, which may not need these files.
        return Retryable("added rows cannot be read")
    return OK


def _may_be_unrecorded(keys: KeyExistenceFilter, context: Context) -> bool:
    """Whether a filter is empty because official releases do not record keys of these types."""
    fields = context.base.manifest.schema.by_id()
    types = (fields[i].logical_type for i in keys.field_ids if i in fields)
    return key_bloom.is_empty(keys) and not all(key_bloom.recorded_by_all(t) for t in types)


def _is_readable(fragment: Fragment) -> bool:
    """Whether the rows can be read without the manifest of their version."""
    return fragment.deletion_file is None and all(
        file.version is not FileVersion.LEGACY for file in fragment.files
    )


UPDATE: Rules[ops.Update] = Rules(
    apply=apply_update, conflicts=conflicts_update, rebase=rebase_update
)
