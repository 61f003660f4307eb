"""Search results of indices: bounds of the rows for which a condition is true or false.

Rows in neither set are null. Where an index is not exact it gives bounds, so that results can be
combined by AND, OR and NOT without losing a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lancelake.index.row_ids import EMPTY, RowIds


@dataclass(frozen=True, slots=True)
class RowMask:
    """Rows of a set or, if inverted, all others."""

    ids: RowIds
    is_inverted: bool = False

    def __invert__(self) -> RowMask:
        return RowMask(self.ids, not self.is_inverted)

    def __and__(self, other: RowMask) -> RowMask:
        match self.is_inverted, other.is_inverted:
            case False, False:
                return RowMask(self.ids & other.ids)
            case False, True:
                return RowMask(self.ids - other.ids)
            case True, False:
                return RowMask(other.ids - self.ids)
            case _:
                return RowMask(self.ids | other.ids, is_inverted=True)

    def __or__(self, other: RowMask) -> RowMask:
        return ~(~self & ~other)


NO_ROWS = RowMask(EMPTY)
ALL_ROWS = RowMask(EMPTY, is_inverted=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """Bounds of the rows for which a condition is true, and of those for which it is false."""

    surely_true: RowMask
    maybe_true: RowMask
    surely_false: RowMask
    maybe_false: RowMask

    @staticmethod
    def exact(true: RowIds, null: RowIds = EMPTY) -> Answer:
        """Return the result of an index with exact rows and null rows."""
        hits, misses = RowMask(true), RowMask(true | null, is_inverted=True)
        return Answer(hits, hits, misses, misses)

    @staticmethod
    def never_false(true: RowIds) -> Answer:
        """Return the result of a condition that is null where it is not true."""
        hits = RowMask(true)
        return Answer(hits, hits, NO_ROWS, NO_ROWS)

    @staticmethod
    def true_only(true: RowIds) -> Answer:
        """Return the result of an index with exact rows and unknown nulls."""
        hits = RowMask(true)
        return Answer(hits, hits, NO_ROWS, ~hits)

    @staticmethod
    def at_most(true: RowIds) -> Answer:
        """Return the result of an index with candidate rows only."""
        return Answer(NO_ROWS, RowMask(true), NO_ROWS, ALL_ROWS)

    def mapped(self, change: Callable[[RowIds], RowIds]) -> Answer:
        """Return the answer with other ids for the same rows; exact answers stay exact."""
        true, false = (
            RowMask(change(mask.ids), mask.is_inverted)
            for mask in (self.maybe_true, self.maybe_false)
        )
        sure = (
            most if mask is before else RowMask(change(mask.ids), mask.is_inverted)
            for mask, before, most in (
                (self.surely_true, self.maybe_true, true),
                (self.surely_false, self.maybe_false, false),
            )
        )
        surely_true, surely_false = sure
        return Answer(surely_true, true, surely_false, false)

    def doubting(self, rows: RowIds) -> Answer:
        """Return the answer of an index that may name these rows by values they no longer have.

        It names them by their current values, too: only what it does not name is extended.
        """
        if not rows:
            return self

        def extended(mask: RowMask) -> RowMask:
            return RowMask(mask.ids - rows, is_inverted=True) if mask.is_inverted else mask

        certain = RowMask(rows, is_inverted=True)
        return Answer(
            self.surely_true & certain,
            extended(self.maybe_true),
            self.surely_false & certain,
            extended(self.maybe_false),
        )

    @property
    def is_exact(self) -> bool:
        """Whether the rows for which the condition is true are known."""
        return self.surely_true is self.maybe_true

    def __and__(self, other: Answer) -> Answer:
        true = self.maybe_true & other.maybe_true
        false = self.maybe_false | other.maybe_false
        if self._is_known and other._is_known:
            return Answer(true, true, false, false)
        return Answer(
            self.surely_true & other.surely_true,
            true,
            self.surely_false | other.surely_false,
            false,
        )

    def __or__(self, other: Answer) -> Answer:
        return ~(~self & ~other)

    def __invert__(self) -> Answer:
        return Answer(self.surely_false, self.maybe_false, self.surely_true, self.maybe_true)

    @property
    def _is_known(self) -> bool:
        return self.is_exact and self.surely_false is self.maybe_false


UNKNOWN = Answer(NO_ROWS, ALL_ROWS, NO_ROWS, ALL_ROWS)
"""Result of a condition that no index supports."""
