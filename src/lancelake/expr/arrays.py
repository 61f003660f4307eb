"""Access to nested values and storage types of Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def at_path(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """Return the value at a path; null where a parent struct is null."""
    array = batch.column(path[0])
    for segment in path[1:]:
        array = pc.struct_field(array, segment)
    return array


def type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type at a path of structs, without its extension; None where there is none."""
    place = schema.get_field_index(path[0])
    if place < 0:
        return None
    dtype = schema.field(place).type
    for name in path[1:]:
        member = dtype.get_field_index(name) if pa.types.is_struct(dtype) else -1
        if member < 0:
            return None
        dtype = dtype.field(member).type
    return plain_type(dtype)


def may_be_null(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a value or one of its parents can be null."""
    if not path:
        return True
    field = schema.field(path[0])
    nullable = bool(field.nullable)
    for segment in path[1:]:
        field = field.type.field(segment)
        nullable = nullable or bool(field.nullable)
    return nullable


def plain_storage(array: pa.Array) -> pa.Array:
    """Return the storage array of an extension array."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type, other types unchanged."""
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def without_views(array: pa.Array) -> pa.Array:
    """Return strings and binaries in the layout that tables use."""
    target = type_without_views(array.type)
    return array if target.equals(array.type) else array.cast(target)


def type_without_views(dtype: pa.DataType) -> pa.DataType:
    """Return the layout that tables use for strings and binaries."""
    if pa.types.is_string_view(dtype):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(dtype) else dtype
