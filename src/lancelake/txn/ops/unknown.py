"""Unknown: an operation of a newer release, which can be carried but not carried out."""

from __future__ import annotations

from lancelake.errors import UnsupportedError
from lancelake.format import operations as ops
from lancelake.txn.rules import Context, Incompatible, Rules, Verdict, VersionTarget, unchanged
from lancelake.txn.state import TableState


def apply(op: ops.UnknownOperation, head: TableState, target: VersionTarget) -> TableState:
    """Refuse: what it means is not known."""
    raise UnsupportedError(f"operation {op.tag} is not known", tag=op.tag)


def conflicts(op: ops.UnknownOperation, theirs: ops.Operation, context: Context) -> Verdict:
    """Refuse: what it tolerates is not known."""
    return Incompatible("an operation of a newer release")


RULES: Rules[ops.UnknownOperation] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
