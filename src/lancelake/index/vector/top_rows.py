"""Nearest rows of several queries, collected from batches of distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lancelake.index.row_ids import U64Array
from lancelake.index.vector.metric import Distances


@dataclass(frozen=True, slots=True)
class DistanceRange:
    """Distances from `lower` up to, not including, `upper`; None for no bound."""

    lower: float | None = None
    upper: float | None = None

    @property
    def is_unbounded(self) -> bool:
        """Whether all distances are in the range."""
        return self.lower is None and self.upper is None


ANY_DISTANCE = DistanceRange()


@dataclass(frozen=True, slots=True)
class RankedRows:
    """Rows by distance, rows of equal distance by id."""

    ids: U64Array
    distances: Distances

    def __len__(self) -> int:
        return len(self.ids)


NO_RANKED_ROWS = RankedRows(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.float32))


class NearestRows:
    """The `k` nearest rows of each query that were added so far."""

    def __init__(self, queries: int, k: int, within: DistanceRange = ANY_DISTANCE) -> None:
        self.k = k
        self._within = within
        self._found = [NO_RANKED_ROWS] * queries

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self._found)

    @property
    def is_unbounded(self) -> bool:
        """Whether rows of all distances are wanted."""
        return self._within.is_unbounded

    def add(self, query: int, ids: U64Array, distances: Distances) -> None:
        """Add rows of one query; rows whose distance is not a number are left out."""
        found = self._found[query]
        is_kept = ~np.isnan(distances)
        if self._within.lower is not None:
            is_kept &= distances >= self._within.lower
        if self._within.upper is not None:
            is_kept &= distances < self._within.upper
        if len(found) == self.k:
            is_kept &= distances <= found.distances[-1]
        places = np.flatnonzero(is_kept)
        if not len(places):
            return
        near = distances[places]
        if len(near) > self.k:
            # Rows at the distance of the last one compete by their ids.
            limit = np.partition(near, self.k - 1)[self.k - 1]
            places = places[near <= limit]
            near = distances[places]
        self._found[query] = self._first(
            np.concatenate([found.ids, ids[places]]), np.concatenate([found.distances, near])
        )

    def count(self, query: int) -> int:
        """Return how many rows of a query were found."""
        return len(self._found[query])

    def result(self, query: int) -> RankedRows:
        """Return the nearest rows of a query."""
        return self._found[query]

    def _first(self, ids: U64Array, distances: Distances) -> RankedRows:
        order = np.lexsort((ids, distances))[: self.k]
        return RankedRows(ids[order], distances[order])
