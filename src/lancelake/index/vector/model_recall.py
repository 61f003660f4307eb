"""Recall of a trained model, estimated on a sample of vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lancelake.index.vector.metric import Matrix, Metric, distances
from lancelake.index.vector.training import TrainedModel

_K = 10
_QUERIES = 128
# A search probes at least so many partitions if it does not say how many.
_PROBES = 20
LEAST_SAMPLE = 20 * _K
"""Fewer vectors give no estimate."""


def estimated_recall(model: TrainedModel, vectors: Matrix) -> float | None:
    """Return the share of the nearest vectors of a sample that its codes and partitions find.

    Queries are vectors of the sample, as `TrainedModel.indexed` returns them. None if the sample
    is too small, or for hamming distances.
    """
    partitions = model.partitions
    if len(vectors) < LEAST_SAMPLE:
        return None
    if partitions.metric is Metric.HAMMING:
        return None
    queries = vectors[:: max(1, len(vectors) // _QUERIES)][:_QUERIES]
    metric = Metric.DOT if partitions.metric is Metric.DOT else Metric.L2
    numbers = model.assigned(vectors)
    found = _coded_distances(model, queries, vectors, numbers)
    near = partitions.by_distance(queries)[:, :_PROBES]
    is_probed = np.zeros((len(queries), len(partitions)), dtype=np.bool_)
    np.put_along_axis(is_probed, near, True, axis=1)
    found = np.where(is_probed[:, numbers], found, np.float32(np.inf))
    exact = _first(distances(metric, queries, vectors))
    hits = [len(np.intersect1d(a, b)) for a, b in zip(_first(found), exact, strict=True)]
    return sum(hits) / (_K * len(queries))


def _coded_distances(
    model: TrainedModel, queries: Matrix, vectors: Matrix, numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Return the distances of queries to the codes of vectors of these partitions."""
    codes = model.codes
    asked, centers = codes.turned(queries), codes.turned(model.partitions.centers)
    found = np.empty((len(queries), len(vectors)), dtype=np.float32)
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        coded = codes.stored(model.encoded(vectors[rows], numbers[rows]))
        found[:, rows] = codes.distances(asked, codes.loaded(coded, len(rows)), centers[number])
    return found


def _first(found: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    return np.argpartition(found, _K, axis=1)[:, :_K]
