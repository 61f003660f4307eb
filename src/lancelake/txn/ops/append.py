"""Append: new rows under the table's schema."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format.schema import Field
from lancelake.txn import fragments, overlap, row_id_assignment
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    Context,
    Incompatible,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
    unchanged,
)


def apply(op: ops.Append, head: TableState, target: VersionTarget) -> TableState:
    """Add the fragments; indices do not cover them."""
    before = head.manifest
    added = fragments.numbered(op.fragments, fragments.next_id(before))
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        row_id_assignment.ensure_free(op.fragments, before.fragments)
        assigned = row_id_assignment.for_new_rows(
            added, next_row_id=next_row_id, version=target.version
        )
        added, next_row_id = assigned.fragments, assigned.next_row_id
    manifest = replace(before, fragments=head.fragments.appended(added), next_row_id=next_row_id)
    return replace(head, manifest=manifest)


def conflicts(op: ops.Append, theirs: ops.Operation, context: Context) -> Verdict:
    """Check an append: compatible while the table's columns keep their constraints."""
    match theirs:
        case ops.Merge() | ops.Project():
            return _against_schema(op, theirs, context)
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.ReserveFragments()
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


def unseen(op: ops.Append, context: Context) -> Verdict:
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


RULES: Rules[ops.Append] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged, unseen=unseen)
