"""UpdateConfig: config, table metadata, schema metadata and field metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.format import operations as ops
from lancelake.txn import overlap, table_metadata
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


def apply(op: ops.UpdateConfig, head: TableState, target: VersionTarget) -> TableState:
    """Apply the updates to the maps."""
    before = head.manifest
    schema = table_metadata.with_schema_metadata(before.schema, op.schema_metadata)
    manifest = replace(
        before,
        config=table_metadata.changed(before.config, op.config),
        table_metadata=table_metadata.changed(before.table_metadata, op.table_metadata),
        schema=table_metadata.with_field_metadata(schema, op.field_metadata),
    )
    return replace(head, manifest=manifest)


def conflicts(op: ops.UpdateConfig, theirs: ops.Operation, context: Context) -> Verdict:
    """Check settings: conflict by key; schema metadata also conflicts with schema changes."""
    touches_schema = overlap.touches_schema(op)
    match theirs:
        case ops.UpdateConfig():
            return _against_config(op, theirs)
        case ops.Overwrite():
            upserts = overlap.upserts(theirs.config_upsert_values)
            if touches_schema or overlap.on_same_keys(op.config, upserts):
                return Incompatible("the table was replaced")
            return OK
        case ops.Merge():
            return Retryable("the schema changed") if touches_schema else OK
        case ops.Restore():
            return Incompatible("the table was replaced") if touches_schema else OK
        case ops.UnknownOperation():
            return Incompatible("an operation of a newer release")
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Project()
            | ops.ReserveFragments()
            | ops.Rewrite()
            | ops.Update()
            | ops.UpdateBases()
            | ops.UpdateMemWalState()
        ):
            return OK
        case _:
            assert_never(theirs)


def _against_config(op: ops.UpdateConfig, theirs: ops.UpdateConfig) -> Verdict:
    shared = overlap.on_same_keys(op.config, theirs.config)
    if shared:
        return Incompatible(f"both set config {', '.join(sorted(shared))}")
    if _same_table_metadata(op, theirs):
        return Incompatible("both change the same metadata of the table")
    if op.schema_metadata is not None and theirs.schema_metadata is not None:
        return Incompatible("both change the metadata of the schema")
    fields = op.field_metadata.keys() & theirs.field_metadata.keys()
    if fields:
        return Incompatible(f"both change the metadata of field {min(fields)}")
    return OK


def _same_table_metadata(op: ops.UpdateConfig, theirs: ops.UpdateConfig) -> bool:
    mine, other = op.table_metadata, theirs.table_metadata
    if mine is None or other is None:
        return False
    return mine.replace or other.replace or not mine.entries.keys().isdisjoint(other.entries)


def unseen(op: ops.UpdateConfig, context: Context) -> Verdict:
    """Check settings: they conflict where another writer changed the same."""
    base, after = context.base.manifest, context.theirs_after.manifest
    if overlap.touches_schema(op) and base.schema != after.schema:
        return Retryable("the schema changed")
    verdict = overlap.on_same_settings(op.config, base.config, after.config)
    if verdict is not OK:
        return verdict
    return overlap.on_same_settings(op.table_metadata, base.table_metadata, after.table_metadata)


RULES: Rules[ops.UpdateConfig] = Rules(
    apply=apply, conflicts=conflicts, rebase=unchanged, unseen=unseen
)
