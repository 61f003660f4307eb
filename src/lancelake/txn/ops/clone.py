"""Clone: the first version of a copy of another table."""

from __future__ import annotations

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.txn.options import TableState
from lancelake.txn.rules import OK, Context, Incompatible, Rules, Verdict, VersionTarget, unchanged


def apply(op: ops.Clone, head: TableState, target: VersionTarget) -> TableState:
    """Raise: a clone creates a table and cannot follow a version."""
    raise InvalidRequestError("a clone can only be the first version of a table")


def conflicts(op: ops.Clone, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a clone: nothing precedes it, so nothing conflicts."""
    if isinstance(theirs, ops.UnknownOperation):
        return Incompatible("an operation of a newer release")
    return OK


RULES: Rules[ops.Clone] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
