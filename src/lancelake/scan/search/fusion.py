"""Fusion of a vector search and a text search into one ranking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError
from lancelake.format.rowids.segment import U64Array

DEFAULT_RANK_CONSTANT = 60

Places = npt.NDArray[np.int64]
"""For each fused row its place in the result of a search; -1 for a row that it did not find."""
_Relevance = npt.NDArray[np.float64]
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReciprocalRankFusion:
    """Relevance is the sum of `1 / (constant + rank)` over the searches that found a row.

    Ranks start at 1. A greater constant reduces the weight of the first ranks.
    """

    constant: int = DEFAULT_RANK_CONSTANT

    def __post_init__(self) -> None:
        if self.constant < 0:
            problem = f"the rank constant must not be negative, got {self.constant}"
            raise InvalidRequestError(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedScore:
    """Relevance is `weight * similarity + (1 - weight) * score`, each between 0 and 1.

    The similarity falls linearly with the distance, from 1 for the nearest to 0 for the farthest
    row that the vector search found. The score is divided by the best one. A row that a search did
    not find has 0 of it.
    """

    vector_weight: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.vector_weight) and 0 <= self.vector_weight <= 1):
            problem = f"the vector weight must be between 0 and 1, got {self.vector_weight}"
            raise InvalidRequestError(problem)


Fusion = ReciprocalRankFusion | WeightedScore


def fusion_of(vector_weight: float | None, rank_constant: int | None = None) -> Fusion | None:
    """Return the fusion that one of two options asks for; None without them."""
    if vector_weight is None:
        return None if rank_constant is None else ReciprocalRankFusion(constant=rank_constant)
    if rank_constant is not None:
        problem = "a rank constant has no effect with a vector weight; specify only one of them"
        raise InvalidRequestError(problem)
    return WeightedScore(vector_weight=float(vector_weight))


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedRows:
    """Rows of two searches by descending relevance, those of equal relevance by address."""

    addresses: U64Array
    relevance: _Floats
    by_vector: Places
    by_text: Places

    def first(self, count: int) -> FusedRows:
        """Return the first rows."""
        return FusedRows(
            addresses=self.addresses[:count],
            relevance=self.relevance[:count],
            by_vector=self.by_vector[:count],
            by_text=self.by_text[:count],
        )


def fuse(
    fusion: Fusion,
    *,
    near: U64Array,
    distances: _Floats,
    matching: U64Array,
    scores: _Floats,
) -> FusedRows:
    """Rank the rows of a vector search and of a text search, each given best first."""
    rows = np.unique(np.concatenate([near, matching]))
    by_vector, by_text = _places(rows, near), _places(rows, matching)
    match fusion:
        case ReciprocalRankFusion():
            relevance = _reciprocal(by_vector, fusion.constant)
            relevance = relevance + _reciprocal(by_text, fusion.constant)
        case WeightedScore():
            weight = fusion.vector_weight
            relevance = weight * _chosen(_similarities(distances), by_vector)
            relevance = relevance + (1 - weight) * _chosen(_shares(scores), by_text)
        case _:
            assert_never(fusion)
    order = np.argsort(-relevance, kind="stable")
    return FusedRows(
        addresses=rows[order],
        relevance=relevance[order].astype(np.float32),
        by_vector=by_vector[order],
        by_text=by_text[order],
    )


def _places(rows: U64Array, found: U64Array) -> Places:
    places = np.full(len(rows), -1, dtype=np.int64)
    places[np.searchsorted(rows, found)] = np.arange(len(found))
    return places


def _reciprocal(places: Places, constant: int) -> _Relevance:
    return np.where(places < 0, 0.0, 1.0 / (constant + 1 + np.maximum(places, 0)))


def _chosen(values: _Relevance, places: Places) -> _Relevance:
    if not len(values):
        return np.zeros(len(places))
    return np.where(places < 0, 0.0, values[np.maximum(places, 0)])


def _similarities(distances: _Floats) -> _Relevance:
    if not len(distances):
        return np.zeros(0)
    wide = distances.astype(np.float64)
    farthest = float(wide.max())
    span = farthest - float(wide.min())
    if not np.isfinite(span) or span == 0:
        # Infinite distances are not comparable: only finite ones are similar.
        return np.where(np.isfinite(wide), 1.0, 0.0)
    found: _Relevance = (farthest - wide) / span
    return found


def _shares(scores: _Floats) -> _Relevance:
    wide: _Relevance = np.maximum(scores.astype(np.float64), 0.0)
    best = float(wide.max(initial=0.0))
    return wide / best if best > 0 else wide
