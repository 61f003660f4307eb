"""Restore: an old version made the newest."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InternalError, InvalidRequestError
from lancelake.format import manifest as flags
from lancelake.format import operations as ops
from lancelake.txn import merged_generations, overlap
from lancelake.txn.options import TableState
from lancelake.txn.rules import OK, Context, Incompatible, Rules, Verdict, VersionTarget, unchanged


def apply(op: ops.Restore, head: TableState, target: VersionTarget) -> TableState:
    """Take everything from the old version; counters and MemWAL progress never decrease."""
    old = target.restored
    if old is None or old.manifest.version != op.version:
        raise InternalError(f"version {op.version} is restored but was not loaded")
    flags.ensure_writable(old.manifest.writer_feature_flags)
    if head.manifest.has_stable_row_ids and not old.manifest.has_stable_row_ids:
        msg = f"version {op.version} is older than the table's stable row ids"
        raise InvalidRequestError(msg, version=op.version)
    manifest = replace(
        old.manifest,
        max_fragment_id=_highest(old.manifest.max_fragment_id, head.manifest.max_fragment_id),
        next_row_id=max(old.manifest.next_row_id, head.manifest.next_row_id),
    )
    return TableState(manifest=manifest, indices=merged_generations.kept_by_restore(old, head))


def conflicts(op: ops.Restore, theirs: ops.Operation, context: Context) -> Verdict:
    """Check a restore: it undoes concurrent changes as if they were earlier."""
    match theirs:
        case ops.UpdateConfig():
            touched = overlap.touches_schema(theirs)
            return Incompatible("metadata of the schema changed") if touched else OK
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Overwrite()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.Restore()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
        ):
            return OK
        case _:
            assert_never(theirs)


def _highest(one: int | None, other: int | None) -> int | None:
    return max((n for n in (one, other) if n is not None), default=None)


RULES: Rules[ops.Restore] = Rules(apply=apply, conflicts=conflicts, rebase=unchanged)
