"""Unknown: an operation of a newer release, which is kept but cannot be applied."""

from __future__ import annotations

from lancelake.errors import UnsupportedError
from lancelake.format import operations as ops
from lancelake.txn.options import TableState
from lancelake.txn.rules import Context, Incompatible, Rules, Verdict, VersionTarget, unchanged


def apply(op: ops.UnknownOperation, head: TableState, target: VersionTarget) -> TableState:
    """Raise: the operation cannot be applied."""
    raise UnsupportedError(f"unknown operation {op.tag}", tag=op.tag)


def conflicts(op: ops.UnknownOperation, theirs: ops.Operation, context: Context) -> Verdict:
    """Report a conflict: the operation cannot be checked."""
    return Incompatible("an operation of a newer release")


RULES: Rules[ops.UnknownOperation] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
