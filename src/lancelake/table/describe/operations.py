"""Short descriptions of operations: names and details."""

from __future__ import annotations

from typing import assert_never

from lancelake.format import operations as ops
from lancelake.format.counts import plural
from lancelake.format.operations.update_config import MapUpdate


def details(operation: ops.Operation) -> str:  # noqa: C901  # one case per operation
    """Return details beyond the name of the operation; empty if there are none."""
    match operation:
        case ops.Delete():
            return operation.predicate
        case ops.Clone():
            kind = "shallow" if operation.is_shallow else "deep"
            return f"{kind}, from version {operation.ref_version} of {operation.ref_path}"
        case ops.CreateIndex():
            return _indices(operation)
        case ops.Restore():
            return f"to version {operation.version}"
        case ops.ReserveFragments():
            return plural(operation.num_fragments, "fragment id")
        case ops.Update():
            return operation.update_mode.name.lower().replace("_", " ")
        case ops.UpdateConfig():
            return _config(operation)
        case ops.Rewrite():
            return plural(len(operation.groups), "group")
        case ops.Project() | ops.Merge():
            return plural(len(operation.schema.fields), "column")
        case ops.DataReplacement():
            return plural(len(operation.replacements), "file")
        case ops.UpdateBases():
            return ", ".join(base.path for base in operation.new_bases)
        case ops.UpdateMemWalState():
            return plural(len(operation.merged_generations), "generation")
        case ops.UnknownOperation():
            return f"number {operation.tag}"
        case ops.Append() | ops.Overwrite():
            return ""
        case _:
            assert_never(operation)


def name(operation: ops.Operation | None) -> str:
    """Return the name of an operation; `?` without a transaction."""
    if operation is None:
        return "?"
    is_unknown = isinstance(operation, ops.UnknownOperation)
    return "Unknown" if is_unknown else type(operation).__name__


def _indices(operation: ops.CreateIndex) -> str:
    new = {index.name for index in operation.new_indices}
    gone = {index.name for index in operation.removed_indices} - new
    parts = [", ".join(sorted(new))] if new else []
    if gone:
        parts.append(f"without {', '.join(sorted(gone))}")
    return " ".join(parts)


def _config(operation: ops.UpdateConfig) -> str:
    maps: list[tuple[str, MapUpdate | None]] = [
        ("", operation.config),
        ("metadata ", operation.table_metadata),
        ("schema ", operation.schema_metadata),
    ]
    parts = [f"{label}{_keys(update)}" for label, update in maps if update is not None]
    if operation.field_metadata:
        parts.append(plural(len(operation.field_metadata), "field"))
    return ", ".join(parts)


def _keys(update: MapUpdate) -> str:
    return ", ".join(f"-{key}" if value is None else key for key, value in update.entries.items())
