"""An answer about the rows of some fragments -> the rows to read of each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyroaring import BitMap, FrozenBitMap

from lancelake.index.answer import Answer, RowMask

# Beyond this share of a fragment, rows that must be checked are found as fast by reading all.
_MOST_CHECKED = 0.5

RowsOf = Callable[[int], int]
"""Number of the rows of a fragment, deleted ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsToRead:
    """Rows of a fragment, deleted ones perhaps among them: those that match, or may match."""

    rows: FrozenBitMap
    is_exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRows:
    """The rows to read of fragments; of those that are not named, all have to be read."""

    by_fragment: dict[int, RowsToRead] = field(default_factory=dict)
    empty: BitMap = field(default_factory=BitMap)
    """Fragments without a row to read."""

    def add(self, answer: Answer, fragments: BitMap, rows_of: RowsOf) -> None:
        """Add what is known about some fragments; the answer has no rows of others."""
        maybe, sure = answer.maybe_true, answer.surely_true
        if maybe.is_inverted:
            # Where nothing is excluded, only an answer that is exact says anything.
            named: Iterable[int] = fragments if answer.is_exact else maybe.ids.parts
        else:
            named = maybe.ids.parts
            self.empty.update(fragments - BitMap(named))
        for fragment in named:
            count = rows_of(fragment) if maybe.is_inverted or not answer.is_exact else 0
            rows = _part(maybe, fragment, count)
            if not rows:
                self.empty.add(fragment)
                continue
            is_exact = answer.is_exact or rows == _part(sure, fragment, count)
            if is_exact or len(rows) <= count * _MOST_CHECKED:
                found = RowsToRead(rows=FrozenBitMap(rows), is_exact=is_exact)
                self.by_fragment[fragment] = found


def _part(mask: RowMask, fragment: int, count: int) -> BitMap:
    named = mask.ids.parts.get(fragment, BitMap())
    return BitMap(range(count)) - named if mask.is_inverted else named
