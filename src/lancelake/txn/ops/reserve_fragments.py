"""ReserveFragments: fragment ids reserved for a later rewrite."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    Context,
    Incompatible,
    Rules,
    Verdict,
    VersionTarget,
    always_valid,
    unchanged,
)


def apply(op: ops.ReserveFragments, head: TableState, target: VersionTarget) -> TableState:
    """Advance the counter: the reserved ids are the highest ones."""
    highest = (head.manifest.max_fragment_id or 0) + op.num_fragments
    return replace(head, manifest=replace(head.manifest, max_fragment_id=highest))


def conflicts(op: ops.ReserveFragments, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a reservation: conflicts only with a replaced table."""
    match theirs:
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
            | ops.UpdateConfig()
            | ops.UpdateMemWalState()
        ):
            return OK
        case _:
            assert_never(theirs)


RULES: Rules[ops.ReserveFragments] = Rules(
    apply=apply, conflicts=conflicts, rebase=unchanged, unseen=always_valid
)
