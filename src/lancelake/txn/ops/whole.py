"""Rules of the operations on a table as a whole, and of MemWAL progress."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InternalError, InvalidRequestError, UnsupportedError
from lancelake.format import operations as ops
from lancelake.format.fragment import DEFAULT_VERSION, BasePath, FileVersion, only_version
from lancelake.format.frozen import FrozenMap
from lancelake.format.index_meta import MEM_WAL, MergedGeneration
from lancelake.format.manifest import FeatureFlags, Manifest, ensure_writable
from lancelake.txn import fragments, merged_generations, overlap, table_metadata
from lancelake.txn.options import TableState
from lancelake.txn.rules import (
    OK,
    Context,
    Incompatible,
    Relevant,
    Retryable,
    Rules,
    Verdict,
    VersionTarget,
    always_valid,
)


def apply_overwrite(op: ops.Overwrite, head: TableState, target: VersionTarget) -> TableState:
    """Replace schema, rows and indices; settings, bases, branch and counters continue."""
    before = head.manifest
    added = fragments.renumbered(op.fragments, fragments.next_id(before))
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        assigned = fragments.for_new_rows(added, next_row_id=next_row_id, version=target.version)
        added, next_row_id = assigned.fragments, assigned.next_row_id
    manifest = replace(
        before,
        schema=op.schema,
        fragments=added,
        next_row_id=next_row_id,
        data_version=_data_version(op, before, target),
        config=FrozenMap({**before.config, **op.config_upsert_values}),
        base_paths=_base_paths(op, before),
        # Other flags applied to the replaced rows.
        reader_feature_flags=before.reader_feature_flags & FeatureFlags.STABLE_ROW_IDS,
        writer_feature_flags=before.writer_feature_flags & FeatureFlags.STABLE_ROW_IDS,
    )
    return TableState(manifest=manifest)


def conflicts_overwrite(op: ops.Overwrite, theirs: Relevant, context: Context) -> Verdict:
    """Check an overwrite: conflicts only with another overwrite or the same settings."""
    match theirs:
        case ops.Overwrite():
            return _same_config(op, theirs) or Retryable("the table was replaced")
        case ops.UpdateConfig():
            return _same_config(op, theirs) or OK
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Project()
            | ops.Restore()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
        ):
            return OK
        case _:
            assert_never(theirs)


def _same_config(op: ops.Overwrite, theirs: ops.Overwrite | ops.UpdateConfig) -> Verdict | None:
    mine = overlap.upserts(op.config_upsert_values)
    if isinstance(theirs, ops.Overwrite):
        other = overlap.upserts(theirs.config_upsert_values)
    else:
        other = theirs.config
    shared = overlap.on_same_keys(mine, other)
    return Incompatible(f"both set config {', '.join(sorted(shared))}") if shared else None


def _data_version(op: ops.Overwrite, before: Manifest, target: VersionTarget) -> FileVersion:
    if target.options.choices.data_version is not None:
        return target.options.choices.data_version
    if before.version:
        return before.data_version
    versions = {file.version for f in op.fragments for file in f.files}
    return only_version(versions) if versions else DEFAULT_VERSION


def _base_paths(op: ops.Overwrite, before: Manifest) -> tuple[BasePath, ...]:
    if not op.initial_bases:
        return before.base_paths
    if before.version:
        raise InvalidRequestError("base paths can only be set when a table is created")
    return table_metadata.extended((), op.initial_bases)


def unseen_overwrite(op: ops.Overwrite, context: Context) -> Verdict:
    """Check an overwrite: it replaces whatever rows there are, but not another's settings."""
    base, after = context.base.manifest, context.theirs_after.manifest
    mine = overlap.upserts(op.config_upsert_values)
    return overlap.on_same_settings(mine, base.config, after.config)


OVERWRITE: Rules[ops.Overwrite] = Rules(
    apply=apply_overwrite, conflicts=conflicts_overwrite, unseen=unseen_overwrite
)


def apply_restore(op: ops.Restore, head: TableState, target: VersionTarget) -> TableState:
    """Take everything from the old version; counters and MemWAL progress never decrease."""
    old = target.restored
    if old is None or old.manifest.version != op.version:
        raise InternalError(f"version {op.version} is restored but was not loaded")
    ensure_writable(old.manifest.writer_feature_flags)
    if head.manifest.has_stable_row_ids and not old.manifest.has_stable_row_ids:
        msg = f"version {op.version} is older than the table's stable row ids"
        raise InvalidRequestError(msg, version=op.version)
    manifest = replace(
        old.manifest,
        max_fragment_id=_highest(old.manifest.max_fragment_id, head.manifest.max_fragment_id),
        next_row_id=max(old.manifest.next_row_id, head.manifest.next_row_id),
    )
    return TableState(manifest=manifest, indices=merged_generations.kept_by_restore(old, head))


def conflicts_restore(op: ops.Restore, theirs: Relevant, context: Context) -> Verdict:
    """Check a restore: it undoes concurrent changes as if they were earlier."""
    match theirs:
        case ops.UpdateConfig():
            touched = overlap.touches_schema(theirs)
            return Incompatible("metadata of the schema changed") if touched else OK
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Overwrite()
            | ops.Project()
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


RESTORE: Rules[ops.Restore] = Rules(apply=apply_restore, conflicts=conflicts_restore)


def apply_clone(op: ops.Clone, head: TableState, target: VersionTarget) -> TableState:
    """Raise: a clone creates a table and cannot follow a version."""
    raise InvalidRequestError("a clone can only be the first version of a table")


def conflicts_clone(op: ops.Clone, theirs: Relevant, context: Context) -> Verdict:
    """Check a clone: nothing precedes it, so nothing conflicts."""
    return OK


CLONE: Rules[ops.Clone] = Rules(apply=apply_clone, conflicts=conflicts_clone)


def apply_reserve_fragments(
    op: ops.ReserveFragments, head: TableState, target: VersionTarget
) -> TableState:
    """Advance the counter: the reserved ids are the highest ones."""
    highest = (head.manifest.max_fragment_id or 0) + op.num_fragments
    return replace(head, manifest=replace(head.manifest, max_fragment_id=highest))


def conflicts_reserve_fragments(
    op: ops.ReserveFragments, theirs: Relevant, context: Context
) -> Verdict:
    """Check a reservation: conflicts only with a replaced table."""
    match theirs:
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Project()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
            | ops.UpdateConfig()
            | ops.UpdateMemWalState()
        ):
            return OK
        case _:
            assert_never(theirs)


RESERVE_FRAGMENTS: Rules[ops.ReserveFragments] = Rules(
    apply=apply_reserve_fragments,
    conflicts=conflicts_reserve_fragments,
    unseen=always_valid,
)


def apply_unknown(op: ops.UnknownOperation, head: TableState, target: VersionTarget) -> TableState:
    """Raise: the operation cannot be applied."""
    raise UnsupportedError(f"unknown operation {op.tag}", tag=op.tag)


def conflicts_unknown(op: ops.UnknownOperation, theirs: Relevant, context: Context) -> Verdict:
    """Report a conflict: the operation cannot be checked."""
    return Incompatible("an operation of a newer release")


UNKNOWN: Rules[ops.UnknownOperation] = Rules(apply=apply_unknown, conflicts=conflicts_unknown)


def apply_update_mem_wal_state(
    op: ops.UpdateMemWalState, head: TableState, target: VersionTarget
) -> TableState:
    """Record the progress; rows and everything else stay."""
    return replace(
        head, indices=merged_generations.advanced(head.indices, op.merged_generations, target)
    )


def conflicts_update_mem_wal_state(
    op: ops.UpdateMemWalState, theirs: Relevant, context: Context
) -> Verdict:
    """Check progress: conflicts with other progress, and with changes of rows."""
    match theirs:
        case ops.Update() | ops.UpdateMemWalState():
            return merged_generations.judged(op.merged_generations, theirs.merged_generations)
        case ops.CreateIndex():
            return merged_generations.judged(op.merged_generations, _marks(theirs))
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
        case ops.Rewrite() | ops.UpdateBases() | ops.UpdateConfig():
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


UPDATE_MEM_WAL_STATE: Rules[ops.UpdateMemWalState] = Rules(
    apply=apply_update_mem_wal_state, conflicts=conflicts_update_mem_wal_state
)
