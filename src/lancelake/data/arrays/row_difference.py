"""Comparison of two columns row by row; nulls equal nulls, NaN equals NaN."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def differing(one: pa.Array, other: pa.Array) -> Mask:
    """Return true for the rows whose values are not the same."""
    if isinstance(one, pa.ExtensionArray):
        return differing(one.storage, other.storage)
    if pa.types.is_dictionary(one.type):
        return differing(one.dictionary_decode(), other.dictionary_decode())
    if pa.types.is_null(one.type):
        return np.zeros(len(one), dtype=np.bool_)
    valid, other_valid = (_valid(array) for array in (one, other))
    found: Mask = (valid != other_valid) | (valid & other_valid & _values(one, other))
    return found


def _values(one: pa.Array, other: pa.Array) -> Mask:
    """Compare values; the result is undefined where one is null."""
    dtype = one.type
    if pa.types.is_struct(dtype):
        found = np.zeros(len(one), dtype=np.bool_)
        for i in range(dtype.num_fields):
            found |= differing(pc.struct_field(one, i), pc.struct_field(other, i))
        return found
    if pa.types.is_fixed_size_list(dtype):
        return _fixed_lists(one, other)
    if pa.types.is_nested(dtype):
        return _lists(one, other)
    if pa.types.is_floating(dtype):
        return _floats(one, other)
    return _mask(pc.fill_null(pc.not_equal(one, other), False))


def _floats(one: pa.Array, other: pa.Array) -> Mask:
    a, b = (array.to_numpy(zero_copy_only=False) for array in (one, other))
    found: Mask = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return found


def _fixed_lists(one: pa.Array, other: pa.Array) -> Mask:
    size = one.type.list_size
    a, b = (array.values.slice(array.offset * size, len(array) * size) for array in (one, other))
    found: Mask = np.logical_or.reduce(differing(a, b).reshape(len(one), size), axis=1)
    return found


def _lists(one: pa.Array, other: pa.Array) -> Mask:
    """Compare lists of the same length item by item."""
    lengths, other_lengths = (_lengths(array) for array in (one, other))
    found: Mask = np.not_equal(lengths, other_lengths)
    rows = np.flatnonzero(~found & (lengths > 0))
    if not len(rows):
        return found
    kept = pa.array(rows)
    a, b = (_items(array.take(kept)) for array in (one, other))
    starts = np.concatenate(([0], np.cumsum(lengths[rows])[:-1]))
    found[rows] = np.logical_or.reduceat(differing(a, b), starts)
    return found


def _items(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        fields = [array.type.key_field, array.type.item_field]
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
        return entries.slice(first, last - first)
    return array.flatten()


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    # Values below a null list are ignored.
    return np.where(_valid(array), np.diff(offsets), 0)


def _valid(array: pa.Array) -> Mask:
    return _mask(array.is_valid())


def _mask(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask
