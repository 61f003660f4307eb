"""Conditions on the indexed column as ranges of keys.

A bound is a cut between keys, just before or after one; both floating-point zeros are on the same
side of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.expr.condition import Comparison, Leaf, Operator, TextMatch, TextTest, Truth
from lancelake.format.computed_once import computed_once
from lancelake.index.order import Integers, Key, integers, key_array, key_of, keys_of, search

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
            return _compared(Operator.EQUAL, pa.scalar(True))
        case Comparison() if leaf.operator is not Operator.NOT_EQUAL:
            return _compared(leaf.operator, leaf.value)
        case TextMatch() if leaf.test is TextTest.STARTS_WITH:
            return _starting(leaf.text.encode())
        case _:
            return None


def points_of(values: pa.Array) -> KeyPoints:
    """Return the keys of values that are not null."""
    if not pa.types.is_floating(values.type):
        return ordered_points(values.unique())[0]
    keys = keys_of(values.unique())
    found = sorted({_ZERO if key == _NEGATIVE_ZERO else key for key in keys.to_pylist()})
    first = [_NEGATIVE_ZERO if key == _ZERO else key for key in found]
    return KeyPoints(first=key_array(first, values.type), last=key_array(found, values.type))


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


def _compared(operator: Operator, value: pa.Scalar) -> KeyRange:
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
