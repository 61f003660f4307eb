"""Quantization of rotated residuals to a few steps, in the direction nearest to each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lancelake.index.vector.metric import Matrix

# Step sizes that are tried for each vector, of which the best is taken.
_TRIED = 24
_CHUNK_ROWS = 1 << 12
# Smaller step sizes than those that use all codes, as a share, are not better.
_LEAST_SHARE = (0.0, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81)
_MORE = 10
_TINY = np.float32(1e-5)


def nearest_steps(vectors: Matrix, bits: int) -> npt.NDArray[np.uint8]:
    """Return the steps of values from the middle; those of negative values count backwards.

    For each vector the step size is chosen whose codes have the smallest angle to it.
    """
    parts = [
        _chunk(vectors[start : start + _CHUNK_ROWS], bits)
        for start in range(0, len(vectors), _CHUNK_ROWS)
    ]
    return np.concatenate(parts) if parts else np.zeros(vectors.shape, dtype=np.uint8)


def _chunk(vectors: Matrix, bits: int) -> npt.NDArray[np.uint8]:
    sizes = np.abs(vectors).astype(np.float32)
    largest = sizes.max(axis=1, keepdims=True)
    sizes = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    most = (1 << bits) - 1
    end = np.float32(most + _MORE)
    best = np.full(len(vectors), -np.inf, dtype=np.float32)
    steps = np.zeros(vectors.shape, dtype=np.uint8)
    for factor in np.linspace(end * _LEAST_SHARE[bits], end, _TRIED, dtype=np.float32):
        tried = np.minimum(np.floor(sizes * factor + _TINY), most)
        middle = tried + np.float32(0.5)
        length = np.sqrt(np.einsum("ij,ij->i", middle, middle))
        score = np.einsum("ij,ij->i", middle, sizes) / length
        better = score > best
        best[better] = score[better]
        steps[better] = tried[better].astype(np.uint8)
    return np.where(np.signbit(vectors), np.uint8(most) - steps, steps)
