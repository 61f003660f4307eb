"""UpdateBases: base paths added to the table."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format import operations as ops
from lancelake.txn import bases
from lancelake.txn.rules import OK, Context, Incompatible, Rules, Verdict, VersionTarget, unchanged
from lancelake.txn.state import TableState


def apply(op: ops.UpdateBases, head: TableState, target: VersionTarget) -> TableState:
    """Register the bases."""
    after = bases.extended(head.manifest.base_paths, op.new_bases)
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


def _same(mine: bases.BasePath, theirs: bases.BasePath) -> bool:
    return (
        (mine.id != 0 and mine.id == theirs.id)
        or (mine.name is not None and mine.name == theirs.name)
        or bases.same_path(mine, theirs)
    )


RULES: Rules[ops.UpdateBases] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
