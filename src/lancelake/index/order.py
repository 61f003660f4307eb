"""Order of values in indices, and ranges of keys.

Floating-point numbers have their total order, strings that of their bytes. Nulls have no key; in
index files they come first.

A bound is a cut between keys, just before or after one; both floating-point zeros are on the same
side of it.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any, Literal, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.condition import Comparison, Leaf, Operator, TextMatch, TextTest, Truth
from lancelake.expr.evaluate import total_order
from lancelake.expr.literals import is_binary, is_text
from lancelake.format.frozen import computed_once

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
        or (bool(pa.types.is_decimal128(dtype) or pa.types.is_decimal256(dtype)))
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
        points: Positions = numbers.searchsorted(wanted.to_numpy(), side)
        return points
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
    maxima: list[Key] = keys.to_pylist()
    for place in range(1, len(maxima)):
        maxima[place] = max(maxima[place - 1], maxima[place])
    return pa.array(maxima, keys.type)


def changes(keys: pa.Array) -> Positions:
    """Return the positions at which a key without nulls differs from the one before it."""
    if len(keys) <= 1:
        return np.zeros(0, dtype=np.int64)
    differs = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    return np.flatnonzero(differs) + 1


def sort_positions(keys: pa.Array) -> Positions:
    """Return the positions of keys in ascending order, nulls first; equal ones stay in theirs."""
    # Nulls come last, and keys are no floating-point numbers: rolling brings nulls to the front.
    places = pc.sort_indices(keys).to_numpy().astype(np.int64)
    return np.roll(places, keys.null_count)


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


_NEGATIVE_ZERO, _ZERO = -1, 0
_LAST_BYTE = 0xFF


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut just before or after a key."""

    key: Key
    is_after: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Keys between two cuts; None leaves a side open."""

    lower: Cut | None = None
    upper: Cut | None = None

    def __and__(self, other: KeyRange) -> KeyRange:
        return KeyRange(
            lower=_innermost(self.lower, other.lower, is_lower=True),
            upper=_innermost(self.upper, other.upper, is_lower=False),
        )


@dataclass(frozen=True, kw_only=True)
class KeyPoints:
    """Some values: for each the first and the last key that is equal to it, ascending."""

    first: pa.Array
    last: pa.Array

    def places(self, keys: pa.Array, start: int, stop: int) -> tuple[list[int], list[int]]:
        """Return where the keys of each of a range of points start and end among ascending keys."""
        numbers = integers(keys)
        if numbers is None:
            first, last = self.first[start:stop], self.last[start:stop]
            return search(keys, first, "left").tolist(), search(keys, last, "right").tolist()
        first, last = self._integers
        low = numbers.searchsorted(first[start:stop], "left")
        return low.tolist(), numbers.searchsorted(last[start:stop], "right").tolist()

    @computed_once
    def _integers(self) -> tuple[Integers, Integers]:
        return self.first.to_numpy(), self.last.to_numpy()


def range_of(leaf: Leaf) -> KeyRange | None:
    """Return the key range of a condition; None if it is not a single range.

    The truth of a boolean column and the start of a text are ranges too.
    """
    match leaf:
        case Truth():
            return _compare(Operator.EQUAL, pa.scalar(True))
        case Comparison() if leaf.operator is not Operator.NOT_EQUAL:
            return _compare(leaf.operator, leaf.value)
        case TextMatch() if leaf.test is TextTest.STARTS_WITH:
            return _starting(leaf.text.encode())
        case _:
            return None


def points_of(values: pa.Array) -> KeyPoints:
    """Return the keys of values that are not null."""
    if not pa.types.is_floating(values.type):
        return ordered_points(values.unique())[0]
    keys = keys_of(values.unique())
    last = sorted({_ZERO if key == _NEGATIVE_ZERO else key for key in keys.to_pylist()})
    first = [_NEGATIVE_ZERO if key == _ZERO else key for key in last]
    return KeyPoints(first=key_array(first, values.type), last=key_array(last, values.type))


def ordered_points(values: pa.Array) -> tuple[KeyPoints, pa.Array]:
    """Return the keys of values that are not null and unique, and the position of each value.

    Both floating-point zeros are points of their own.
    """
    keys = keys_of(values)
    order = pc.sort_indices(keys)
    keys = keys.take(order)
    return KeyPoints(first=keys, last=keys), order


def place_of(keys: pa.Array, cut: Cut | None, without: int) -> int:
    """Return how many of ascending keys are before a cut; `without` if there is none."""
    if cut is None:
        return without
    side: Literal["left", "right"] = "right" if cut.is_after else "left"
    numbers = integers(keys)
    if numbers is not None:
        # A plain number would be compared with unsigned ones as a floating-point number.
        return int(numbers.searchsorted(numbers.dtype.type(cut.key), side))
    return int(search(keys, pa.array([cut.key], keys.type), side)[0])


def _compare(operator: Operator, value: pa.Scalar) -> KeyRange:
    before, after = _cut(value, is_after=False), _cut(value, is_after=True)
    match operator:
        case Operator.EQUAL:
            return KeyRange(lower=before, upper=after)
        case Operator.LESS:
            return KeyRange(upper=before)
        case Operator.LESS_EQUAL:
            return KeyRange(upper=after)
        case Operator.GREATER:
            return KeyRange(lower=after)
        case Operator.GREATER_EQUAL:
            return KeyRange(lower=before)
        case Operator.NOT_EQUAL:
            raise AssertionError("not a range")
        case _:
            assert_never(operator)


def _cut(value: pa.Scalar, *, is_after: bool) -> Cut:
    key = key_of(value)
    if pa.types.is_floating(value.type) and key in (_NEGATIVE_ZERO, _ZERO):
        key = _ZERO if is_after else _NEGATIVE_ZERO
    return Cut(key, is_after)


def _starting(text: bytes) -> KeyRange:
    """Return the range of texts with a prefix."""
    shared = text.rstrip(bytes([_LAST_BYTE]))
    upper = Cut(shared[:-1] + bytes([shared[-1] + 1]), is_after=False) if shared else None
    return KeyRange(lower=Cut(text, is_after=False), upper=upper)


def _innermost(one: Cut | None, other: Cut | None, *, is_lower: bool) -> Cut | None:
    """Return the more selective cut."""
    if one is None or other is None:
        return one if other is None else other
    cuts = sorted((one, other), key=lambda cut: (cut.key, cut.is_after))
    return cuts[1] if is_lower else cuts[0]
