"""Slices trimmed to their visible values, and lists with other values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def tightened(array: pa.Array) -> pa.Array:
    """Return a list or map without values that belong to none of its rows."""
    if pa.types.is_fixed_size_list(array.type):
        return _tight_fixed_size(array)
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if array.offset == 0 and first == 0 and last == len(array.values) > 0:
        return array
    moved = pc.subtract(offsets, pa.scalar(first, offsets.type))
    buffers = [_validity(array), moved.buffers()[1]]
    # Arrow for Rust rejects an empty slice from the middle of strings.
    values = array.values.slice(first, last - first) if last > first else _none_of(array)
    return pa.Array.from_buffers(array.type, len(array), buffers, children=[values])


def without_offset(array: pa.Array) -> pa.Array:
    """Return the same values in buffers of their own, if the array is a slice.

    The codec gives a struct's nulls to its fields and ignores that a field is a slice.
    """
    return pa.concat_arrays([array]) if array.offset else array


def rebuilt_list(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Return a list like `array`, of another type and with other values."""
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(target) else 2]
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )


def _tight_fixed_size(array: pa.FixedSizeListArray) -> pa.Array:
    size = array.type.list_size
    if array.offset == 0 and len(array.values) == len(array) * size:
        return array
    values = array.values.slice(array.offset * size, len(array) * size)
    return pa.Array.from_buffers(array.type, len(array), [_validity(array)], children=[values])


def _validity(array: pa.Array) -> pa.Buffer | None:
    return array.is_valid().buffers()[1] if array.null_count else None


def _none_of(array: pa.Array) -> pa.Array:
    return pa.nulls(0, array.values.type)
