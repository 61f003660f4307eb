"""Sort keys of indexed values: integers, bytes or decimals with the same order.

Floating-point numbers have their total order, strings that of their bytes. Nulls have no key; in
index files they come first.
"""

from __future__ import annotations

import bisect
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.float_order import total_order
from lancelake.expr.literals import is_binary, is_text

Key = Any  # int, bytes or Decimal, one of them for a type
Positions = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer[Any]]


def has_order(dtype: pa.DataType) -> bool:
    """Whether values of a type can be sorted in an index."""
    return bool(
        pa.types.is_integer(dtype)
        or pa.types.is_floating(dtype)
        or pa.types.is_boolean(dtype)
        or is_text(dtype)
        or is_binary(dtype)
        or pa.types.is_fixed_size_binary(dtype)
        or _is_time(dtype)
        or _is_decimal(dtype)
    )


def keys_of(values: pa.Array) -> pa.Array:
    """Return the keys of values; null where a value is null."""
    dtype = values.type
    if pa.types.is_floating(dtype):
        return total_order(values)
    if pa.types.is_boolean(dtype):
        return values.cast(pa.uint8())
    return values.view(_key_type(dtype))


def values_of(keys: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the values that have these keys."""
    if pa.types.is_floating(dtype):
        # Flipping the bits of negative numbers twice restores them.
        return total_order(keys.view(dtype)).view(dtype)
    return keys.cast(dtype) if pa.types.is_boolean(dtype) else keys.view(dtype)


def key_array(keys: list[Key | None], dtype: pa.DataType) -> pa.Array:
    """Return keys as an array for values of a type."""
    if pa.types.is_floating(dtype):
        return pa.array(keys, _KEYS_BY_WIDTH[dtype.bit_width])
    return pa.array(keys, pa.uint8() if pa.types.is_boolean(dtype) else _key_type(dtype))


def key_of(value: pa.Scalar) -> Key:
    """Return the key of one value that is not null."""
    return keys_of(pa.array([value], value.type))[0].as_py()


def integers(keys: pa.Array) -> Integers | None:
    """Return integer keys without nulls as a NumPy array; None for keys of other types."""
    return keys.to_numpy() if pa.types.is_integer(keys.type) else None


def search(keys: pa.Array, wanted: pa.Array, side: Literal["left", "right"]) -> Positions:
    """Return the insertion points of keys among ascending ones, before or after equal keys.

    Neither has nulls.
    """
    numbers = integers(keys)
    if numbers is not None:
        found: Positions = numbers.searchsorted(wanted.to_numpy(), side)
        return found
    find = bisect.bisect_left if side == "left" else bisect.bisect_right
    places = range(len(keys))
    places_found = [find(places, key, key=lambda i: keys[i].as_py()) for key in wanted.to_pylist()]
    return np.array(places_found, dtype=np.int64)


def is_ascending(keys: pa.Array) -> bool:
    """Whether keys without nulls never descend."""
    return bool(pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py() is not False)


def are_in_order(low: pa.Array, high: pa.Array) -> bool:
    """Whether pairs of bounds, one after the other, never descend; nulls come first."""
    if pa.types.is_integer(low.type) and not low.null_count and not high.null_count:
        first, last = low.to_numpy(), high.to_numpy()
        return bool((first <= last).all()) and bool((last[:-1] <= first[1:]).all())
    places = np.empty(2 * len(low), dtype=np.int64)
    places[::2] = np.arange(len(low))
    places[1::2] = np.arange(len(low)) + len(low)
    keys = pa.concat_arrays([low, high]).take(pa.array(places))
    nulls = keys.null_count
    return bool(keys[:nulls].null_count == nulls) and is_ascending(keys[nulls:])


def running_maximum(keys: pa.Array) -> pa.Array:
    """Return for each of the keys, without nulls, the greatest up to there."""
    if is_ascending(keys):
        return keys
    found: list[Key] = keys.to_pylist()
    for place in range(1, len(found)):
        found[place] = max(found[place - 1], found[place])
    return pa.array(found, keys.type)


def changes(keys: pa.Array) -> Positions:
    """Return the positions at which a key without nulls differs from the one before it."""
    if len(keys) <= 1:
        return np.zeros(0, dtype=np.int64)
    differs = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(differs) + 1


def sort_positions(keys: pa.Array) -> Positions:
    """Return the positions of keys in ascending order, nulls first; equal ones stay in theirs."""
    order = [("key", "ascending", "at_start")]
    found = pc.sort_indices(pa.table({"key": keys}), sort_keys=order)
    return np.asarray(found.to_numpy(), dtype=np.int64)


_KEYS_BY_WIDTH = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def _key_type(dtype: pa.DataType) -> pa.DataType:
    if _is_time(dtype):
        return _KEYS_BY_WIDTH[dtype.bit_width]
    # Decimals of a column have the same scale, so only digits are compared.
    if pa.types.is_decimal128(dtype):
        return pa.decimal128(38, 0)
    if pa.types.is_decimal256(dtype):
        return pa.decimal256(76, 0)
    if pa.types.is_string(dtype):
        return pa.binary()
    return pa.large_binary() if pa.types.is_large_string(dtype) else dtype


def _is_time(dtype: pa.DataType) -> bool:
    is_span = pa.types.is_time(dtype) or pa.types.is_duration(dtype)
    return bool(is_span or pa.types.is_date(dtype) or pa.types.is_timestamp(dtype))


def _is_decimal(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(dtype) or pa.types.is_decimal256(dtype))
