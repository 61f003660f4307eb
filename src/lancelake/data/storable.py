"""Column types that data files of a version support, and that pylance 4 can read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lancelake.errors import UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.column_path import join_path
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema

WRITABLE = (FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2)


def ensure_storable(
    schema: Schema, version: FileVersion, *, newest_readers_only: bool = False
) -> None:
    """Raise `UnsupportedError` for the first column that files of this version do not support."""
    if version not in WRITABLE:
        known = ", ".join(writable.value for writable in WRITABLE)
        msg = f"data files of version {version.value} cannot be written; supported are {known}"
        raise UnsupportedError(msg, found=version.value)
    for trail in _trails(schema.fields):
        where = join_path(node.name for node in trail)
        _ensure_version_holds(trail, version, where)
        if not newest_readers_only:
            _ensure_release_4_reads(trail, version, where)


def is_for_newest_readers(schema: Schema, version: FileVersion) -> bool:
    """Whether a table with this schema already has columns that not all releases can read."""
    try:
        ensure_storable(schema, version)
    except UnsupportedError:
        return True
    return False


def _ensure_version_holds(trail: tuple[Field, ...], version: FileVersion, where: str) -> None:
    node = trail[-1]
    is_structural = version is FileVersion.V2_2
    if not is_structural and node.logical_type == "map":
        raise _needs_2_2(where, "a map", version)
    if not is_structural and node.logical_type.startswith("fixed_size_list:struct:"):
        raise _needs_2_2(where, "a fixed-size list of structs", version)
    if node.is_blob_v2:
        if not is_structural:
            raise _needs_2_2(where, "a blob v2 column (lance.blob.v2)", version)
        if len(trail) > 1:
            msg = f"column {where} is a nested blob, which cannot be written"
            raise UnsupportedError(msg, column=where, action="Use a top-level column.")
    if is_structural and node.is_blob_v1:
        msg = f"column {where} has blob encoding v1, which data files 2.2 do not support"
        action = 'Write with data_storage_version="2.1", or use the type lance.blob.v2.'
        raise UnsupportedError(msg, column=where, action=action)


def _ensure_release_4_reads(trail: tuple[Field, ...], version: FileVersion, where: str) -> None:
    node = trail[-1]
    if _has_offset_zone(node):
        msg = f"column {where} has type {node.logical_type}, on which pylance 4 crashes"
        action = "Use a named time zone such as UTC."
        raise UnsupportedError(msg, column=where, found=node.logical_type, action=action)
    if version.leaves_only and node.logical_type == "null" and _is_below_list(trail):
        msg = f"column {where} has type null inside a list, where pylance 4 loses rows"
        action = "Use another type."
        raise UnsupportedError(msg, column=where, action=action)


def _is_below_list(trail: tuple[Field, ...]) -> bool:
    return any(node.logical_type.startswith(("list", "large_list", "map")) for node in trail)


def _has_offset_zone(node: Field) -> bool:
    if "timestamp:" not in node.logical_type:
        return False
    dtype = storage_field(node).type
    while pa.types.is_fixed_size_list(dtype):
        dtype = dtype.value_type
    return pa.types.is_timestamp(dtype) and ":" in (dtype.tz or "")


def _trails(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    for field in fields:
        yield (field,)
        if not field.is_blob_v2:
            for below in _trails(field.children):
                yield (field, *below)


def _needs_2_2(where: str, what: str, version: FileVersion) -> UnsupportedError:
    msg = f"column {where} is {what}, which is not supported in data files {version.value}"
    return UnsupportedError(msg, column=where, action='Write with data_storage_version="2.2".')
