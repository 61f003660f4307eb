"""Conversion of stored values to users' types: JSON text and extension types."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.arrays.retype import retype, struct_of
from lancelake.format import jsonb
from lancelake.format.schema import Field


def to_public(field: Field, array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the values of a field as the type that users see."""
    if array.type.equals(target, check_metadata=True):
        return array
    if not any(node.is_json for node in field.walk()):
        return retype(array, target)
    if field.is_json:
        return retype(jsonb.decode_array(retype(array, pa.large_binary())), target)
    if pa.types.is_struct(target):
        children = [
            to_public(child, array.field(i), target.field(i).type)
            for i, child in enumerate(field.children)
        ]
        return struct_of(children, list(target), array)
    if pa.types.is_map(target):
        return _map(field, array, target)
    values = to_public(field.children[0], array.values, target.value_type)
    count = 1 if pa.types.is_fixed_size_list(target) else 2
    return _rebuilt(array, target, count, values)


def _map(field: Field, array: pa.MapArray, target: pa.MapType) -> pa.Array:
    key, value = field.children[0].children
    keys = to_public(key, array.keys, target.key_type)
    items = to_public(value, array.items, target.item_type)
    fields = [target.key_field, target.item_field]
    return _rebuilt(array, target, 2, pa.StructArray.from_arrays([keys, items], fields=fields))


def _rebuilt(array: pa.Array, target: pa.DataType, count: int, values: pa.Array) -> pa.Array:
    buffers = array.buffers()[:count]
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )
