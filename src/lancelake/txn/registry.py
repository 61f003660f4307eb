"""Registry of the rules by operation type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar, assert_never

from lancelake.format import operations as ops
from lancelake.format.operations import Operation
from lancelake.format.transaction import Transaction
from lancelake.txn.ops import (
    append,
    clone,
    create_index,
    data_replacement,
    delete,
    merge,
    overwrite,
    project,
    reserve_fragments,
    restore,
    rewrite,
    unknown,
    update,
    update_bases,
    update_config,
    update_mem_wal_state,
)
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    AffectedRows,
    Context,
    RebasePort,
    Rebasing,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Rules of an operation, bound to the operation."""

    apply: Callable[[TableState, VersionTarget], TableState]
    conflicts: Callable[[Operation, Context], Verdict]
    rebase: Callable[[Rebasing], Operation | Retryable]
    unseen: Callable[[Context], Verdict]


def conflicts(mine: Operation, theirs: Operation, context: Context) -> Verdict:
    """Check whether mine conflicts with theirs, which was committed first."""
    return rules_of(mine).conflicts(theirs, context)


def unseen(mine: Operation, context: Context) -> Verdict:
    """Check whether mine is still valid after commits that are not known."""
    return rules_of(mine).unseen(context)


def rebase(
    mine: Transaction,
    head: TableState,
    *,
    base: TableState,
    affected_rows: AffectedRows | None,
    port: RebasePort,
) -> Transaction | Retryable:
    """Rebase mine onto the head, after a verdict that requires it.

    Returns Retryable when the rebase finds that both changed the same row.
    """
    rebasing = Rebasing(base=base, head=head, affected_rows=affected_rows, port=port)
    operation = rules_of(mine.operation).rebase(rebasing)
    if isinstance(operation, Retryable):
        return operation
    if isinstance(operation, ops.Delete | ops.Update):
        return replace(mine, operation=operation, read_version=head.manifest.version)
    return replace(mine, operation=operation)


def rules_of(op: Operation) -> Bound:  # noqa: C901  # one case per operation
    """Find the rules by the type of the operation."""
    match op:
        case ops.Append():
            return _bound(append.RULES, op)
        case ops.Clone():
            return _bound(clone.RULES, op)
        case ops.CreateIndex():
            return _bound(create_index.RULES, op)
        case ops.DataReplacement():
            return _bound(data_replacement.RULES, op)
        case ops.Delete():
            return _bound(delete.RULES, op)
        case ops.Merge():
            return _bound(merge.RULES, op)
        case ops.Overwrite():
            return _bound(overwrite.RULES, op)
        case ops.Project():
            return _bound(project.RULES, op)
        case ops.ReserveFragments():
            return _bound(reserve_fragments.RULES, op)
        case ops.Restore():
            return _bound(restore.RULES, op)
        case ops.Rewrite():
            return _bound(rewrite.RULES, op)
        case ops.Update():
            return _bound(update.RULES, op)
        case ops.UpdateBases():
            return _bound(update_bases.RULES, op)
        case ops.UpdateConfig():
            return _bound(update_config.RULES, op)
        case ops.UpdateMemWalState():
            return _bound(update_mem_wal_state.RULES, op)
        case ops.UnknownOperation():
            return _bound(unknown.RULES, op)
        case _:
            assert_never(op)


Op = TypeVar("Op", bound=Operation)


def _bound(rules: Rules[Op], op: Op) -> Bound:
    return Bound(
        apply=partial(rules.apply, op),
        conflicts=partial(rules.conflicts, op),
        rebase=partial(rules.rebase, op),
        unseen=partial(rules.unseen, op),
    )
