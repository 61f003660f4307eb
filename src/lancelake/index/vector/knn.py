"""Nearest vectors of queries by faiss, with exact distances."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import numpy.typing as npt

from lancelake.index.vector.faiss_library import faiss_or_none, one_thread
from lancelake.index.vector.metric import Distances, Matrix, Metric

_MANY_QUERIES = 20
Nearest = tuple[Distances, npt.NDArray[np.int64]]
"""Distances and places of the nearest vectors of each query; places are negative without one."""


def nearest_vectors(metric: Metric, queries: Matrix, vectors: Matrix, k: int) -> Nearest | None:
    """Return the `k` nearest vectors of each query; None if faiss does not compute the metric.

    With cosine distance, queries and vectors are of length 1.
    """
    library = faiss_or_none()
    is_single = vectors.dtype == np.float32 and queries.dtype == np.float32
    if library is None or metric is Metric.HAMMING or not is_single:
        return None
    is_l2 = metric is Metric.L2
    measure = library.METRIC_L2 if is_l2 else library.METRIC_INNER_PRODUCT
    with one_thread() if len(queries) < _MANY_QUERIES else nullcontext():
        found, places = library.knn(queries, vectors, k, measure)
    return (found if is_l2 else 1 - found), places
