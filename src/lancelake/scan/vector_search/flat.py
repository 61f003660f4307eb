"""Exact vector search: the distances of all rows of a scan."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.row_ids import U64Array
from lancelake.index.vector.knn import nearest_vectors
from lancelake.index.vector.metric import Distances, Matrix, Metric, distances
from lancelake.index.vector.top_rows import NearestRows
from lancelake.index.vector.vectors import Vectors, VectorType
from lancelake.scan.plan import ScanPlan
from lancelake.scan.stream import run

# From so many queries on, products of matrices find candidates faster than differences.
_MANY_QUERIES = 8
_MORE_CANDIDATES = 16


def search_rows(
    plan: ScanPlan,
    dtype: VectorType,
    metric: Metric,
    queries: npt.NDArray[np.float32],
    nearest: NearestRows,
) -> None:
    """Add the rows of a plan, whose first column are vectors and whose last are addresses."""
    wanted = dtype.query_matrix(queries)
    with run(plan) as reader:
        for batch in reader:
            addresses = batch.column(batch.num_columns - 1).to_numpy()
            add_values(batch.column(0), addresses, dtype, metric, wanted, nearest)


def add_values(
    values: pa.Array,
    ids: U64Array,
    dtype: VectorType,
    metric: Metric,
    queries: Matrix,
    nearest: NearestRows,
) -> None:
    """Add rows with their vectors; `queries` are in the type of `VectorType.query_matrix`."""
    vectors = dtype.vectors(values)
    if not len(vectors.rows):
        return
    if dtype.is_multi:
        rows, found = _late_interaction(metric, queries, vectors)
        nearest.add(0, ids[rows], found)
        return
    if metric is Metric.L2 and nearest.is_unbounded:
        _add_candidates(vectors.matrix, ids[vectors.rows], queries, nearest)
    else:
        found = distances(metric, queries, vectors.matrix)
        for place in range(len(queries)):
            nearest.add(place, ids[vectors.rows], found[place])


def _late_interaction(
    metric: Metric, queries: Matrix, vectors: Vectors
) -> tuple[npt.NDArray[np.int64], Distances]:
    """Return for each row the sum, over the query's vectors, of the distance to its nearest."""
    rows, starts = np.unique(vectors.rows, return_index=True)
    found = distances(metric, queries, vectors.matrix)
    return rows, np.minimum.reduceat(found, starts, axis=1).sum(axis=0, dtype=np.float32)


def _add_candidates(vectors: Matrix, ids: U64Array, queries: Matrix, nearest: NearestRows) -> None:
    """Add rows that are nearest by a faster computation, with their exact distances."""
    count = min(len(ids), nearest.k + _MORE_CANDIDATES)
    for place, rows in enumerate(_candidates(vectors, queries, count)):
        chosen = rows[rows >= 0]
        exact = distances(Metric.L2, queries[place : place + 1], vectors[chosen])[0]
        nearest.add(place, ids[chosen], exact)


def _candidates(vectors: Matrix, queries: Matrix, count: int) -> npt.NDArray[np.int64]:
    """Return the places of about the nearest vectors of each query, negative without one."""
    if len(queries) < _MANY_QUERIES:
        top = nearest_vectors(Metric.L2, queries, vectors, count)
        if top is not None:
            return top[1]
    with np.errstate(over="ignore", invalid="ignore"):
        rough = np.einsum("ij,ij->i", vectors, vectors) - 2 * (queries @ vectors.T)
    if count == len(vectors):
        return np.broadcast_to(np.arange(count), (len(queries), count))
    return np.argpartition(rough, count, axis=1)[:, :count]
