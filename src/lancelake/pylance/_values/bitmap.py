"""Sets of 32-bit integers, as pylance returns fragment ids."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, MutableSet, Set
from typing import Any

from pyroaring import BitMap

_LIMIT = 1 << 32


class Bitmap(MutableSet[int]):
    """A set of integers below 2**32; equal to any collection with the same values."""

    def __init__(self, values: Iterable[int] | None = None) -> None:
        """Take the values; raise ValueError if one does not fit in 32 bits."""
        self._rows = BitMap(map(_checked, values or ()))

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Bitmap:  # type: ignore[override]  # of integers
        return cls(it)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and 0 <= value < _LIMIT and value in self._rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Set):
            return len(self) == len(other) and all(value in other for value in self)
        if not isinstance(other, Iterable) or isinstance(other, str | bytes):
            return NotImplemented
        try:
            return self._rows == Bitmap(other)._rows
        except (TypeError, ValueError):
            return False

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __reduce__(self) -> tuple[Any, ...]:
        return (Bitmap, (list(self),))

    def __repr__(self) -> str:
        return f"Bitmap({{{', '.join(map(str, self))}}})"

    def add(self, value: int) -> None:
        """Add a value."""
        self._rows.add(_checked(value))

    def discard(self, value: int) -> None:
        """Remove a value, if it is present."""
        if value in self:
            self._rows.discard(value)

    def update(self, values: Iterable[int]) -> None:
        """Add values."""
        self._rows.update(map(_checked, values))

    def copy(self) -> Bitmap:
        """Return a copy, which changes by itself."""
        return Bitmap(self)

    def union(self, other: Iterable[int]) -> Bitmap:
        """Return the values of either set."""
        return Bitmap(self._rows | Bitmap(other)._rows)

    def intersection(self, other: Iterable[int]) -> Bitmap:
        """Return the values of both sets."""
        return Bitmap(self._rows & Bitmap(other)._rows)

    def difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values that the other set does not have."""
        return Bitmap(self._rows - Bitmap(other)._rows)

    def symmetric_difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values of exactly one of the sets."""
        return Bitmap(self._rows ^ Bitmap(other)._rows)

    def issubset(self, other: Iterable[int]) -> bool:
        """Whether the other set has all values."""
        return self._rows.issubset(Bitmap(other)._rows)

    def issuperset(self, other: Iterable[int]) -> bool:
        """Whether the set has all values of the other."""
        return self._rows.issuperset(Bitmap(other)._rows)


def _checked(value: Any) -> int:
    number = operator.index(value)
    if not 0 <= number < _LIMIT:
        msg = f"Bitmap values must fit in an unsigned 32-bit integer, got {number}"
        raise ValueError(msg)
    return number
