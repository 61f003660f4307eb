"""UpdateBases: base paths added to the table."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format import operations as ops
from lancelake.format.bases import BasePath
from lancelake.txn import table_metadata
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


def apply(op: ops.UpdateBases, head: TableState, target: VersionTarget) -> TableState:
    """Register the bases."""
    after = table_metadata.extended(head.manifest.base_paths, op.new_bases)
    return replace(head, manifest=replace(head.manifest, base_paths=after))


def conflicts(op: ops.UpdateBases, theirs: ops.Operation, context: Context) -> Verdict:
    """Check added bases: conflict with other bases of the same id, name or path."""
    if isinstance(theirs, ops.UnknownOperation):
        return Incompatible("an operation of a newer release")
    if isinstance(theirs, ops.UpdateBases) and any(
        _same(mine, other) for mine in op.new_bases for other in theirs.new_bases
    ):
        return Incompatible("the same base was registered")
    return OK


def _same(mine: BasePath, theirs: BasePath) -> bool:
    return (
        (mine.id != 0 and mine.id == theirs.id)
        or (mine.name is not None and mine.name == theirs.name)
        or table_metadata.same_path(mine, theirs)
    )


def unseen(op: ops.UpdateBases, context: Context) -> Verdict:
    """Check added bases: valid while no others were added."""
    before, now = context.base.manifest.base_paths, context.theirs_after.manifest.base_paths
    return OK if before == now else Retryable("bases were registered")


RULES: Rules[ops.UpdateBases] = Rules(
    apply=apply, conflicts=conflicts, rebase=unchanged, unseen=unseen
)
