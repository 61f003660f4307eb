"""Rows with scores, combined as compound queries state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.format.rowids.segment import U64Array

F32 = npt.NDArray[np.float32]

_Join = Callable[[F32, F32], F32]


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows by address, ascending, each with a score."""

    addresses: U64Array
    scores: F32

    @staticmethod
    def of(addresses: U64Array, scores: F32) -> ScoredRows:
        """Return rows in any order, of which none is given twice."""
        # A stable sort merges the ascending rows of partitions.
        order = np.argsort(addresses, kind="stable")
        return ScoredRows(addresses[order], scores[order])

    def __len__(self) -> int:
        return len(self.addresses)

    def times(self, factor: float) -> ScoredRows:
        """Return the rows with their scores multiplied."""
        return (
            self if factor == 1.0 else ScoredRows(self.addresses, self.scores * np.float32(factor))
        )

    def with_those_of(self, others: Sequence[ScoredRows]) -> ScoredRows:
        """Return these rows with the scores of others added where they match, too."""
        scores = self.scores
        for other in others:
            scores = scores + other.scores_at(self.addresses)
        return ScoredRows(self.addresses, scores)

    def scores_at(self, addresses: U64Array) -> F32:
        """Return the scores of rows; 0 for those that are not among these."""
        if not len(self):
            return np.zeros(len(addresses), np.float32)
        rows = np.minimum(np.searchsorted(self.addresses, addresses), len(self) - 1)
        is_there = self.addresses[rows] == addresses
        found: F32 = np.where(is_there, self.scores[rows], np.float32(0.0))
        return found

    def within(self, other: ScoredRows) -> ScoredRows:
        """Return the rows that are among others, too."""
        kept = np.isin(self.addresses, other.addresses, assume_unique=True)
        return ScoredRows(self.addresses[kept], self.scores[kept])

    def without(self, other: ScoredRows) -> ScoredRows:
        """Return the rows that are not among others."""
        kept = ~np.isin(self.addresses, other.addresses, assume_unique=True)
        return ScoredRows(self.addresses[kept], self.scores[kept])

    def ranked(self, most: int | None) -> ScoredRows:
        """Return the rows by descending score, those of equal score by address."""
        rows = np.arange(len(self))
        if most is not None and most < len(self) // 4:
            bound = -np.partition(-self.scores, most)[most] if most else np.float32(np.inf)
            rows = np.flatnonzero(self.scores >= bound)
        order = rows[np.argsort(-self.scores[rows], kind="stable")]
        order = order if most is None else order[:most]
        return ScoredRows(self.addresses[order], self.scores[order])


NONE = ScoredRows(np.zeros(0, np.uint64), np.zeros(0, np.float32))


def summed(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return the rows of any part, with the sum of their scores."""
    return _joined(parts, lambda some, others: some + others)


def best(parts: Sequence[ScoredRows]) -> ScoredRows:
    """Return the rows of any part, each with the best of its scores."""
    return _joined(parts, np.maximum)


def _joined(parts: Sequence[ScoredRows], join: _Join) -> ScoredRows:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return NONE
    rows = np.unique(np.concatenate([part.addresses for part in parts]))
    scores = parts[0].scores_at(rows)
    for part in parts[1:]:
        scores = join(scores, part.scores_at(rows))
    return ScoredRows(rows, scores)
