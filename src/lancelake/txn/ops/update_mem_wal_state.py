"""UpdateMemWalState: progress of MemWAL regions."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format.index_meta import MEM_WAL
from lancelake.format.merged_generation import MergedGeneration
from lancelake.txn import merged_generations
from lancelake.txn.options import TableState
from lancelake.txn.rules import OK, Context, Incompatible, Rules, Verdict, VersionTarget, unchanged


def apply(op: ops.UpdateMemWalState, head: TableState, target: VersionTarget) -> TableState:
    """Record the progress; rows and everything else stay."""
    return replace(
        head, indices=merged_generations.advanced(head.indices, op.merged_generations, target)
    )


def conflicts(op: ops.UpdateMemWalState, theirs: ops.Operation, context: Context) -> Verdict:
    """Check progress: conflicts with other progress, and with changes of rows."""
    match theirs:
        case ops.Update() | ops.UpdateMemWalState():
            return merged_generations.judged(op.merged_generations, theirs.merged_generations)
        case ops.CreateIndex():
            return merged_generations.judged(op.merged_generations, _marks(theirs))
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Overwrite()
            | ops.Project()
            | ops.Restore()
        ):
            return Incompatible("the table changed in another way")
        case ops.ReserveFragments() | ops.Rewrite() | ops.UpdateBases() | ops.UpdateConfig():
            return OK
        case _:
            assert_never(theirs)


def _marks(theirs: ops.CreateIndex) -> list[MergedGeneration]:
    entries = (i for i in theirs.new_indices if i.name == MEM_WAL)
    return [
        MergedGeneration(region_id=region, generation=generation)
        for entry in entries
        for region, generation in merged_generations.progress_of(entry).items()
    ]


RULES: Rules[ops.UpdateMemWalState] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
