"""Rewrite: the same rows in new files, as compaction writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations.rewrite import RewriteGroup
from lancelake.txn import fragments, index_coverage, overlap
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


def apply(op: ops.Rewrite, head: TableState, target: VersionTarget) -> TableState:
    """Replace the old fragments by the new ones, and update index coverage."""
    before = head.manifest
    groups = _numbered(op.groups, fragments.next_id(before))
    after = _exchanged(head.fragments, groups)
    indices = index_coverage.after_rewrite(
        head.indices,
        groups,
        op.rewritten_indices,
        stable_row_ids=before.has_stable_row_ids,
        records_moves=target.options.choices.fragment_reuse is not None,
    )
    indices = index_coverage.with_fragment_reuse(indices, target.options.choices.fragment_reuse)
    return TableState(manifest=replace(before, fragments=after), indices=indices)


def conflicts(op: ops.Rewrite, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a rewrite: compatible while no other commit changes its fragments."""
    mine = overlap.rewritten(op)
    match theirs:
        case ops.Delete() | ops.Update():
            shared = overlap.touched(theirs).all
            return overlap.on_same_fragments(mine, shared, what="rows changed")
        case ops.DataReplacement():
            shared = overlap.replaced(theirs)
            return overlap.on_same_fragments(mine, shared, what="a column was replaced")
        case ops.Rewrite():
            return _against_rewrite(op, theirs, context)
        case ops.CreateIndex():
            return _against_index(op, theirs, context)
        case ops.Merge():
            return Retryable("every fragment was rewritten")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.UpdateBases()
            | ops.UpdateConfig()
            | ops.UpdateMemWalState()
        ):
            return OK
        case _:
            assert_never(theirs)


def _against_rewrite(op: ops.Rewrite, theirs: ops.Rewrite, context: Context) -> Verdict:
    base, after = context.base, context.theirs_after
    reuse_changed = base.index_named(FRAGMENT_REUSE) != after.index_named(FRAGMENT_REUSE)
    if context.fragment_reuse is not None and reuse_changed:
        return Retryable("both record where rows moved to")
    mine, other = overlap.rewritten(op), overlap.rewritten(theirs)
    return overlap.on_same_fragments(mine, other, what="rows moved to other files")


def _against_index(op: ops.Rewrite, theirs: ops.CreateIndex, context: Context) -> Verdict:
    if context.fragment_reuse is not None:
        entries = (*theirs.new_indices, *theirs.removed_indices)
        if any(i.name == FRAGMENT_REUSE for i in entries):
            return Retryable("the record of where rows moved to was changed")
        return _keeps_together(op, theirs.new_indices)
    return overlap.covers_rewritten(theirs.new_indices, overlap.rewritten(op))


def _keeps_together(op: ops.Rewrite, indices: tuple[IndexMetadata, ...]) -> Verdict:
    """Raise unless an index covers all or none of the fragments that are merged into one."""
    for index in indices:
        covered = frozenset(index.fragments() or ())
        for group in op.groups:
            old = {fragment.id for fragment in group.old_fragments}
            if not index.is_system and covered & old and old - covered:
                return Retryable(
                    f"index {index.name!r} covers only some fragments that are rewritten together"
                )
    return OK


def _numbered(groups: tuple[RewriteGroup, ...], first: int) -> tuple[RewriteGroup, ...]:
    numbered: list[RewriteGroup] = []
    for group in groups:
        new = fragments.numbered(group.new_fragments, first)
        first += sum(1 for f in group.new_fragments if f.id == 0)
        numbered.append(replace(group, new_fragments=new))
    return tuple(numbered)


def _exchanged(before: FragmentList, groups: tuple[RewriteGroup, ...]) -> FragmentList:
    ids = frozenset(before.ids)
    gone: set[FragmentId] = set()
    for group in groups:
        for old in group.old_fragments:
            if old.id not in ids or old.id in gone:
                msg = f"a rewrite replaces fragment {old.id}, which the table does not have"
                raise InvalidRequestError(msg, fragment=old.id)
            gone.add(old.id)
    new = (f for group in groups for f in group.new_fragments)
    return before.exchanged((), removed=gone).appended(new)


RULES: Rules[ops.Rewrite] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
