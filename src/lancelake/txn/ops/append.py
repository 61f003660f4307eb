"""Append: new rows under the table's schema."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.txn import fragments, overlap, row_ids
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
from lancelake.txn.state import TableState


def apply(op: ops.Append, head: TableState, target: VersionTarget) -> TableState:
    """Add the fragments; indices do not cover them."""
    before = head.manifest
    added = fragments.numbered(op.fragments, fragments.next_id(before))
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        row_ids.ensure_free(op.fragments, before.fragments)
        assigned = row_ids.for_new_rows(added, next_row_id=next_row_id, version=target.version)
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


RULES: Rules[ops.Append] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
