"""Change of Arrow types without copying: names, nullability and extension types."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.arrays.text import is_text, unchecked_text
from lancelake.errors import CorruptTableError


def retype(array: pa.Array, target: pa.DataType, *, raw_text: bool = False) -> pa.Array:
    """Return `array` as `target`, sharing its buffers; leaves are cast where they differ.

    With `raw_text`, bytes become strings without a check that they are UTF-8.
    """
    if array.type.equals(target, check_metadata=True):
        return array
    if isinstance(target, pa.BaseExtensionType):
        storage = retype(array, target.storage_type, raw_text=raw_text)
        return pa.ExtensionArray.from_storage(target, storage)
    if isinstance(array, pa.ExtensionArray):
        return retype(array.storage, target, raw_text=raw_text)
    ensure_same_kind(array.type, target)
    if pa.types.is_struct(target):
        return _struct(array, target, raw_text=raw_text)
    if pa.types.is_map(target):
        return _map(array, target, raw_text=raw_text)
    if pa.types.is_list(target) or pa.types.is_large_list(target):
        return _from_buffers(array, target, array.buffers()[:2], raw_text=raw_text)
    if pa.types.is_fixed_size_list(target):
        return _from_buffers(array, target, array.buffers()[:1], raw_text=raw_text)
    if _is_list_of_bytes(array.type):
        array = _binary(array)
    if raw_text and is_text(target):
        return unchecked_text(array, target)
    return array if array.type.equals(target) else array.cast(target)


def retype_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema, column by column."""
    columns = [retype(c, f.type) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _binary(array: pa.ListArray | pa.LargeListArray) -> pa.Array:
    """Return lists of bytes as binary values."""
    is_large = pa.types.is_large_list(array.type)
    # The buffers of a slice start before its values.
    values = pa.concat_arrays([array.values]) if array.values.offset else array.values
    return pa.Array.from_buffers(
        pa.large_binary() if is_large else pa.binary(),
        len(array),
        [*array.buffers()[:2], values.buffers()[1]],
        array.null_count,
        array.offset,
    )


def ensure_same_kind(found: pa.DataType, target: pa.DataType) -> None:
    """Raise when values would have another meaning with another type."""
    if not pa.types.is_nested(target):
        fits = not pa.types.is_nested(found) or _is_list_of_bytes(found)
    elif pa.types.is_struct(target):
        fits = pa.types.is_struct(found) and found.num_fields >= target.num_fields
    elif pa.types.is_fixed_size_list(target):
        fits = pa.types.is_fixed_size_list(found) and found.list_size == target.list_size
    else:
        fits = found.id == target.id
    if not fits:
        raise CorruptTableError(f"a column has type {found}, and {target} in the table")


def _is_list_of_bytes(dtype: pa.DataType) -> bool:
    is_list = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
    return bool(is_list and pa.types.is_uint8(dtype.value_type))


def _struct(array: pa.StructArray, target: pa.StructType, *, raw_text: bool) -> pa.Array:
    fields = list(target)
    children = [retype(array.field(i), f.type, raw_text=raw_text) for i, f in enumerate(fields)]
    return struct_of(children, fields, array)


def struct_of(children: list[pa.Array], fields: list[pa.Field], like: pa.Array) -> pa.StructArray:
    """Build a struct of these children that is null where `like` is null."""
    if not fields:
        validity = like.is_valid().buffers()[1] if like.null_count else None
        return pa.Array.from_buffers(pa.struct([]), len(like), [validity])
    mask = like.is_null() if like.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _map(array: pa.MapArray, target: pa.MapType, *, raw_text: bool) -> pa.Array:
    entries = pa.StructArray.from_arrays(
        [
            retype(array.keys, target.key_type, raw_text=raw_text),
            retype(array.items, target.item_type, raw_text=raw_text),
        ],
        fields=[target.key_field, target.item_field],
    )
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[:2],
        array.null_count,
        array.offset,
        [entries],
    )


def _from_buffers(
    array: pa.Array, target: pa.DataType, buffers: list[pa.Buffer], *, raw_text: bool
) -> pa.Array:
    values = retype(array.values, target.value_type, raw_text=raw_text)
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )
