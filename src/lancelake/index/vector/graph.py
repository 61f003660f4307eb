"""HNSW graph of a partition, as rows of an index file."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.faiss_library import faiss
from lancelake.index.vector.metric import Matrix
from lancelake.index.vector.settings import BuildSettings

SCHEMA = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Rows of a graph, level by level, and its settings as JSON."""

    rows: pa.RecordBatch
    settings: str


def build_graph(vectors: Matrix, settings: BuildSettings) -> Graph:
    """Build the graph of the vectors of a partition."""
    library = faiss()
    index = library.IndexHNSWFlat(vectors.shape[1], settings.neighbours)
    index.hnsw.efConstruction = settings.construction_ef
    if len(vectors):
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
    levels = library.vector_to_array(index.hnsw.levels)
    neighbors = library.vector_to_array(index.hnsw.neighbors).astype(np.int64)
    starts = library.vector_to_array(index.hnsw.offsets).astype(np.int64)
    per_level = library.vector_to_array(index.hnsw.cum_nneighbor_per_level).astype(np.int64)
    parts: list[pa.RecordBatch] = []
    ends = [0]
    for level in range(settings.max_level):
        nodes = np.flatnonzero(levels > level)
        if len(nodes):
            low, high = int(per_level[level]), int(per_level[level + 1])
            places = starts[nodes][:, np.newaxis] + np.arange(low, high)
            parts.append(_rows(nodes, neighbors[places], vectors))
        ends.append(ends[-1] + len(nodes))
    described = {
        "entry_point": max(0, int(index.hnsw.entry_point)),
        "params": {
            "max_level": settings.max_level,
            "m": settings.neighbours,
            "ef_construction": settings.construction_ef,
            "prefetch_distance": 2,
        },
        "level_offsets": ends,
    }
    rows = pa.concat_batches(parts) if parts else pa.RecordBatch.from_pylist([], schema=SCHEMA)
    return Graph(rows=rows, settings=json.dumps(described, separators=(",", ":")))


def _rows(
    nodes: npt.NDArray[np.int64], neighbors: npt.NDArray[np.int64], vectors: Matrix
) -> pa.RecordBatch:
    """Return the rows of one level: for each node its neighbours, the nearest first."""
    exists = neighbors >= 0
    difference = vectors[np.where(exists, neighbors, 0)] - vectors[nodes][:, np.newaxis]
    distances = np.einsum("ijk,ijk->ij", difference, difference).astype(np.float32)
    distances[~exists] = np.inf
    order = np.argsort(distances, axis=1, kind="stable")
    counts = exists.sum(axis=1)
    is_listed = np.arange(neighbors.shape[1]) < counts[:, np.newaxis]
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    columns = [
        pa.array(nodes.astype(np.uint32)),
        _lists(ends, np.take_along_axis(neighbors, order, 1)[is_listed].astype(np.uint32)),
        _lists(ends, np.take_along_axis(distances, order, 1)[is_listed]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _lists(ends: npt.NDArray[np.int32], values: npt.NDArray[np.generic]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values))
