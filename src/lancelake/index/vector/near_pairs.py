"""Pairs of vectors that are near each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lancelake.index.vector.metric import Distances, Matrix, Metric, distances, normalized

Places = npt.NDArray[np.int64]
# Sizes of official Lance, on which the order of pairs depends.
_TILE_ROWS = 8192
_TILE_BYTES = 16 << 20
_ANCHORS = 32
# Products of matrices lose about so much of the squares that they are made of.
_LOSS = np.float32(1e-5)


def near_pairs(
    metric: Metric, vectors: Matrix, limit: float, row_bytes: int
) -> Iterator[tuple[Places, Places, Distances]]:
    """Yield each pair of vectors with a finite distance up to a limit once, the earlier one first.

    Tiles of vectors, whose codes have `row_bytes` each, are compared with themselves and with
    those that follow; inside of two tiles, pairs are in the order of their places.
    """
    if metric is Metric.COSINE:
        vectors = normalized(vectors)
    step = max(_ANCHORS, min(_TILE_ROWS, _TILE_BYTES // max(1, row_bytes)))
    for start in range(0, len(vectors), step):
        for other in range(start, len(vectors), step):
            for first in range(start, min(start + step, len(vectors)), _ANCHORS):
                stop = min(first + _ANCHORS, start + step)
                anchors, candidates = vectors[first:stop], vectors[other : other + step]
                rows, columns, found = _near(metric, anchors, candidates, limit)
                is_later = rows + first < columns + other
                if is_later.any():
                    yield (rows + first)[is_later], (columns + other)[is_later], found[is_later]


def _near(
    metric: Metric, anchors: Matrix, candidates: Matrix, limit: float
) -> tuple[Places, Places, Distances]:
    if metric in (Metric.DOT, Metric.HAMMING):
        every = distances(metric, anchors, candidates)
        rows, columns = np.nonzero(np.isfinite(every) & (every <= limit))
        return rows, columns, every[rows, columns]
    scale = np.float32(0.5 if metric is Metric.COSINE else 1)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", candidates, candidates)
        squares = np.einsum("ij,ij->i", anchors, anchors)[:, np.newaxis] + squares
        rough = squares - 2 * (anchors @ candidates.T)
        rows, columns = np.nonzero(~(rough * scale > limit + squares * _LOSS))
        # Half of the squared difference of vectors of length 1 is the cosine distance.
        difference = anchors[rows] - candidates[columns]
        exact = np.einsum("ij,ij->i", difference, difference) * scale
    is_near = np.isfinite(exact) & (exact <= limit)
    return rows[is_near], columns[is_near], exact[is_near].astype(np.float32)
