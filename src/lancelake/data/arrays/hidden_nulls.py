"""Replacement of nulls below null parents by arbitrary values."""

from __future__ import annotations

import pyarrow as pa


def all_valid(array: pa.Array) -> pa.Array:
    """Return the array without nulls; the values in their place are unspecified."""
    dtype = array.type
    if pa.types.is_dictionary(dtype):
        return pa.DictionaryArray.from_arrays(array.indices.fill_null(0), array.dictionary)
    if pa.types.is_struct(dtype):
        children = [array.field(i) for i in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(dtype))
    children = [array.values] if pa.types.is_nested(dtype) else []
    buffers = [None, *array.buffers()[1 : _own_buffers(array)]]
    return pa.Array.from_buffers(dtype, len(array), buffers, 0, array.offset, children)


def _own_buffers(array: pa.Array) -> int:
    """Count the buffers of an array without its children."""
    if pa.types.is_fixed_size_list(array.type):
        return 1
    return 2 if pa.types.is_nested(array.type) else len(array.buffers())
