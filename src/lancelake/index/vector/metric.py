"""Distance metrics of vectors."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from lancelake.errors import InvalidRequestError

Matrix: TypeAlias = npt.NDArray[Any]
"""Vectors, one per row."""
Distances: TypeAlias = npt.NDArray[np.float32]

# Differences of so many values stay in the CPU cache.
_CHUNK_VALUES = 1 << 18


class Metric(Enum):
    """A distance metric, by the name that index files use."""

    L2 = "l2"
    COSINE = "cosine"
    DOT = "dot"
    HAMMING = "hamming"

    @property
    def shown(self) -> str:
        """Name in plans, as official Lance writes it."""
        return "L2" if self is Metric.L2 else self.value.capitalize()


_NAMES = {**{metric.value: metric for metric in Metric}, "euclidean": Metric.L2}


def metric_named(name: str) -> Metric:
    """Return the metric of a name, in any case; `euclidean` is another name of `l2`."""
    found = _NAMES.get(str(name).lower())
    if found is None:
        known = ", ".join(metric.value for metric in Metric)
        problem = f"Metric type {name!r} is not supported; the metrics are: {known}"
        raise InvalidRequestError(problem, metric=name)
    return found


def normalized(vectors: Matrix) -> Matrix:
    """Return vectors of length 1; a vector of length 0 becomes NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
        scaled: Matrix = vectors / norms[:, np.newaxis]
    return scaled


def distances(metric: Metric, queries: Matrix, vectors: Matrix) -> Distances:
    """Return the distance of each query (row) to each vector (column)."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        match metric:
            case Metric.L2:
                found = _l2(queries, vectors)
            case Metric.COSINE:
                found = _cosine(queries, vectors)
            case Metric.DOT:
                found = 1 - queries @ vectors.T
            case Metric.HAMMING:
                found = _hamming(queries, vectors)
            case _:
                assert_never(metric)
    return found.astype(np.float32, copy=False)


def _l2(queries: Matrix, vectors: Matrix) -> Matrix:
    """Sum squared differences: the shorter formula with products loses digits of near vectors."""
    out = np.empty((len(queries), len(vectors)), dtype=vectors.dtype)
    step = max(1, _CHUNK_VALUES // max(1, vectors.shape[1]))
    for start in range(0, len(vectors), step):
        part = vectors[start : start + step]
        for place, query in enumerate(queries):
            difference = part - query
            out[place, start : start + step] = np.einsum("ij,ij->i", difference, difference)
    return out


def _cosine(queries: Matrix, vectors: Matrix) -> Matrix:
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    query_lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries))
    found: Matrix = 1 - (queries @ vectors.T) / (query_lengths[:, np.newaxis] * lengths)
    return found


def _hamming(queries: Matrix, vectors: Matrix) -> Matrix:
    """Count the bits that differ."""
    return np.stack([np.bitwise_count(vectors ^ query).sum(axis=1) for query in queries])
