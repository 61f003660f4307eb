"""Delete: rows deleted from existing fragments."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.txn import overlap
from lancelake.txn.options import TableState
from lancelake.txn.overlap import changed_rows, rebased_rows
from lancelake.txn.rules import (
    OK,
    Context,
    Incompatible,
    Rebasing,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
)


def apply(op: ops.Delete, head: TableState, target: VersionTarget) -> TableState:
    """Replace the fragments that lost rows, and remove those that lost all."""
    return changed_rows(head, updated=op.updated_fragments, removed=op.deleted_fragment_ids)


def conflicts(op: ops.Delete, theirs: ops.Operation, context: Context) -> Verdict:
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
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


def rebase(op: ops.Delete, rebasing: Rebasing) -> ops.Delete | Retryable:
    """Merge my deleted rows into theirs."""
    rebased = rebased_rows(op.updated_fragments, op.deleted_fragment_ids, rebasing)
    if isinstance(rebased, Retryable):
        return rebased
    return replace(op, updated_fragments=rebased.updated, deleted_fragment_ids=rebased.removed)


RULES: Rules[ops.Delete] = Rules(apply=apply, conflicts=conflicts, rebase=rebase)
