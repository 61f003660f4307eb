"""Rules of the operations that change the schema or settings."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from lancelake.errors import InvalidRequestError
from lancelake.format import operations as ops
from lancelake.format.fragment import BasePath
from lancelake.txn import overlap, table_metadata
from lancelake.txn.fragments import touched_in, without_dropped_files
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
)


def apply_merge(op: ops.Merge, head: TableState, target: VersionTarget) -> TableState:
    """Replace fragments and schema; no row may be added or removed."""
    _ensure_same_rows(op, head)
    before = head.fragments_by_id()
    after = tuple(
        touched_in(f, target.version) if f.id in before and before[f.id].files != f.files else f
        for f in op.fragments
    )
    schema = replace(op.schema, metadata=op.schema.metadata or head.manifest.schema.metadata)
    indices = overlap.retained(head.indices, schema, [f.id for f in after])
    indices = overlap.without_changed_columns(
        indices, schema, before=before, after={f.id: f for f in after}
    )
    manifest = replace(head.manifest, fragments=after, schema=schema)
    return TableState(manifest=manifest, indices=indices)


def conflicts_merge(op: ops.Merge, theirs: Relevant, context: Context) -> Verdict:
    """Check a merge, which lists all fragments: any change of them or the schema conflicts."""
    match theirs:
        case (
            ops.Append()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Merge()
            | ops.Rewrite()
            | ops.Update()
        ):
            return Retryable("fragments changed")
        case ops.UpdateConfig():
            touched = overlap.touches_schema(theirs)
            return Retryable("metadata of the schema changed") if touched else OK
        case ops.Project():
            return Incompatible("the schema changed")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case ops.Clone() | ops.CreateIndex() | ops.UpdateBases():
            return OK
        case _:
            assert_never(theirs)


def _ensure_same_rows(op: ops.Merge, head: TableState) -> None:
    given = {f.id: f for f in op.fragments}
    for fragment in head.manifest.fragments:
        other = given.get(fragment.id)
        if other is None:
            msg = f"a merge must list every fragment, but {fragment.id} is missing"
            raise InvalidRequestError(msg, fragment=fragment.id)
        if fragment.physical_rows is not None and other.physical_rows != fragment.physical_rows:
            msg = (
                f"a merge cannot change the {fragment.physical_rows} rows of fragment "
                f"{fragment.id} to {other.physical_rows}"
            )
            raise InvalidRequestError(
                msg, expected=fragment.physical_rows, found=other.physical_rows
            )


MERGE: Rules[ops.Merge] = Rules(apply=apply_merge, conflicts=conflicts_merge)


def apply_project(op: ops.Project, head: TableState, target: VersionTarget) -> TableState:
    """Replace the schema, and remove files without any of its columns."""
    before = head.manifest
    # The operation does not include schema metadata.
    schema = replace(op.schema, metadata=before.schema.metadata)
    fields = schema.by_id()
    after = head.fragments.mapped(lambda f: without_dropped_files(f, fields))
    indices = overlap.retained(head.indices, schema, after.ids)
    manifest = replace(before, schema=schema, fragments=after)
    return TableState(manifest=manifest, indices=indices)


def conflicts_project(op: ops.Project, theirs: Relevant, context: Context) -> Verdict:
    """Check a projection: conflicts with schema changes, and with rows it would make invalid."""
    match theirs:
        case ops.Append() | ops.DataReplacement() | ops.Update():
            return OK if op.preserves_nullability else Retryable("values were written")
        case ops.Merge() | ops.Project():
            return Retryable("the schema changed")
        case ops.Overwrite() | ops.Restore():
            return Incompatible("the table was replaced")
        case ops.UpdateMemWalState():
            return Incompatible("the state of the MemWAL changed")
        case (
            ops.Clone()
            | ops.CreateIndex()
            | ops.Delete()
            | ops.Rewrite()
            | ops.UpdateBases()
            | ops.UpdateConfig()
        ):
            return OK
        case _:
            assert_never(theirs)


PROJECT: Rules[ops.Project] = Rules(apply=apply_project, conflicts=conflicts_project)


def apply_update_config(
    op: ops.UpdateConfig, head: TableState, target: VersionTarget
) -> TableState:
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


def conflicts_update_config(op: ops.UpdateConfig, theirs: Relevant, context: Context) -> Verdict:
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
        case (
            ops.Append()
            | ops.Clone()
            | ops.CreateIndex()
            | ops.DataReplacement()
            | ops.Delete()
            | ops.Project()
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


def unseen_update_config(op: ops.UpdateConfig, context: Context) -> Verdict:
    """Check settings: they conflict where another writer changed the same."""
    base, after = context.base.manifest, context.theirs_after.manifest
    if overlap.touches_schema(op) and base.schema != after.schema:
        return Retryable("the schema changed")
    verdict = overlap.on_same_settings(op.config, base.config, after.config)
    if verdict is not OK:
        return verdict
    return overlap.on_same_settings(op.table_metadata, base.table_metadata, after.table_metadata)


UPDATE_CONFIG: Rules[ops.UpdateConfig] = Rules(
    apply=apply_update_config,
    conflicts=conflicts_update_config,
    unseen=unseen_update_config,
)


def apply_update_bases(op: ops.UpdateBases, head: TableState, target: VersionTarget) -> TableState:
    """Register the bases."""
    after = table_metadata.extended(head.manifest.base_paths, op.new_bases)
    return replace(head, manifest=replace(head.manifest, base_paths=after))


def conflicts_update_bases(op: ops.UpdateBases, theirs: Relevant, context: Context) -> Verdict:
    """Check added bases: conflict with other bases of the same id, name or path."""
    if isinstance(theirs, ops.UpdateBases) and any(
        _same(mine, other) for mine in op.new_bases for other in theirs.new_bases
    ):
        return Incompatible("the same base was registered")
    return OK


def _same(mine: BasePath, theirs: BasePath) -> bool:
    return (
        (mine.id != 0 and mine.id == theirs.id)
        or (mine.name is not None and mine.name == theirs.name)
        or table_metadata.same_path(mine, theirs)
    )


def unseen_update_bases(op: ops.UpdateBases, context: Context) -> Verdict:
    """Check added bases: valid while no others were added."""
    before, now = context.base.manifest.base_paths, context.theirs_after.manifest.base_paths
    return OK if before == now else Retryable("bases were registered")


UPDATE_BASES: Rules[ops.UpdateBases] = Rules(
    apply=apply_update_bases,
    conflicts=conflicts_update_bases,
    unseen=unseen_update_bases,
)
