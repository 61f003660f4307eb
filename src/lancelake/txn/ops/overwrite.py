"""Overwrite: replaces the whole table, or creates it."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.bases import BasePath
from lancelake.format.file_version import DEFAULT, FileVersion, only
from lancelake.format.frozen import FrozenMap
from lancelake.format.manifest import FeatureFlags, Manifest
from lancelake.txn import fragments, overlap, row_id_assignment, table_metadata
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


def apply(op: ops.Overwrite, head: TableState, target: VersionTarget) -> TableState:
    """Replace schema, rows and indices; settings, bases, branch and counters continue."""
    before = head.manifest
    added = fragments.renumbered(op.fragments, fragments.next_id(before))
    next_row_id = before.next_row_id
    if before.has_stable_row_ids:
        assigned = row_id_assignment.for_new_rows(
            added, next_row_id=next_row_id, version=target.version
        )
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


def conflicts(op: ops.Overwrite, theirs: ops.Operation, context: Context) -> Verdict:
    """Check an overwrite: conflicts only with another overwrite or the same settings."""
    match theirs:
        case ops.Overwrite():
            return _same_config(op, theirs) or Retryable("the table was replaced")
        case ops.UpdateConfig():
            return _same_config(op, theirs) or OK
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
    return only(versions) if versions else DEFAULT


def _base_paths(op: ops.Overwrite, before: Manifest) -> tuple[BasePath, ...]:
    if not op.initial_bases:
        return before.base_paths
    if before.version:
        raise InvalidRequestError("base paths can only be set when a table is created")
    return table_metadata.extended((), op.initial_bases)


def unseen(op: ops.Overwrite, context: Context) -> Verdict:
    """Check an overwrite: it replaces whatever rows there are, but not another's settings."""
    base, after = context.base.manifest, context.theirs_after.manifest
    mine = overlap.upserts(op.config_upsert_values)
    return overlap.on_same_settings(mine, base.config, after.config)


RULES: Rules[ops.Overwrite] = Rules(
    apply=apply, conflicts=conflicts, rebase=unchanged, unseen=unseen
)
