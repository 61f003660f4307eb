"""Vectors, their distances, the nearest of them, and their partitions around centers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError, InvalidRequestError, MissingPackageError
from lancelake.extras import optional
from lancelake.format.frozen import parse
from lancelake.index.row_sets import U64Array
from lancelake.proto import index_pb2

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
    named_metric = _NAMES.get(str(name).lower())
    if named_metric is None:
        names = ", ".join(metric.value for metric in Metric)
        problem = f"Metric type {name!r} is not supported; the metrics are: {names}"
        raise InvalidRequestError(problem, metric=name)
    return named_metric


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
                result = _l2(queries, vectors)
            case Metric.COSINE:
                result = _cosine(queries, vectors)
            case Metric.DOT:
                result = 1 - queries @ vectors.T
            case Metric.HAMMING:
                result = np.stack(
                    [np.bitwise_count(vectors ^ query).sum(axis=1) for query in queries]
                )
            case _:
                assert_never(metric)
    return result.astype(np.float32, copy=False)


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
    cosines: Matrix = 1 - (queries @ vectors.T) / (query_lengths[:, np.newaxis] * lengths)
    return cosines


_BFLOAT16_STORAGE = pa.binary(2)


class Element(Enum):
    """Type of the values of a vector."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BFLOAT16 = "bfloat16"
    UINT8 = "uint8"


_ELEMENTS = {
    pa.float16(): Element.FLOAT16,
    pa.float32(): Element.FLOAT32,
    pa.float64(): Element.FLOAT64,
    pa.uint8(): Element.UINT8,
    _BFLOAT16_STORAGE: Element.BFLOAT16,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Vectors of some rows: `rows` has the position of the row of each, ascending."""

    matrix: Matrix
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorType:
    """Type of a vector column; a multivector column has a list of vectors in each row."""

    element: Element
    dimension: int
    is_multi: bool

    @staticmethod
    def of(dtype: pa.DataType) -> VectorType | None:
        """Return the vector type of a storage type; None for one without vectors."""
        is_multi = pa.types.is_list(dtype) or pa.types.is_large_list(dtype)
        inner = dtype.value_type if is_multi else dtype
        if isinstance(inner, pa.BaseExtensionType):
            inner = inner.storage_type
        if not pa.types.is_fixed_size_list(inner) or not inner.list_size:
            return None
        value = inner.value_type
        if isinstance(value, pa.BaseExtensionType):
            value = value.storage_type
        element = _ELEMENTS.get(value)
        if element is None:
            return None
        return VectorType(element=element, dimension=inner.list_size, is_multi=is_multi)

    @property
    def default_metric(self) -> Metric:
        """Metric of a search that does not name one."""
        return Metric.HAMMING if self.element is Element.UINT8 else Metric.L2

    def supports(self, metric: Metric) -> bool:
        """Whether the metric is defined for the element type."""
        return (metric is Metric.HAMMING) == (self.element is Element.UINT8)

    def query_matrix(self, queries: npt.NDArray[np.float32]) -> Matrix:
        """Return queries in the type in which distances are computed."""
        if self.element is Element.UINT8:
            return np.clip(queries, 0, 255).astype(np.uint8)
        if self.element is Element.FLOAT16:
            queries = queries.astype(np.float16).astype(np.float32)
        elif self.element is Element.BFLOAT16:
            queries = _round_to_bfloat16(queries)
        return queries.astype(self._computed)

    def vectors(self, values: pa.Array) -> Vectors:
        """Return the vectors of an array; null rows have none."""
        values = _storage(values)
        rows = np.arange(len(values), dtype=np.int64)
        if values.null_count:
            rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
            values = values.drop_null()
        if not self.is_multi:
            return Vectors(matrix=self._matrix(values), rows=rows)
        counts = values.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        owners = np.repeat(rows, counts)
        inner = _storage(values.flatten())
        if inner.null_count:
            owners = owners[inner.is_valid().to_numpy(zero_copy_only=False)]
            inner = inner.drop_null()
        return Vectors(matrix=self._matrix(inner), rows=owners)

    @property
    def _computed(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self.element is Element.FLOAT64 else np.float32

    def _matrix(self, values: pa.FixedSizeListArray) -> Matrix:
        flat = _storage(values.flatten())
        if self.element is Element.BFLOAT16:
            return _from_bfloat16(flat).reshape(-1, self.dimension)
        if self.element is Element.UINT8 and flat.null_count:
            flat = flat.fill_null(0)
        matrix: Matrix = flat.to_numpy(zero_copy_only=False).reshape(-1, self.dimension)
        wanted = np.uint8 if self.element is Element.UINT8 else self._computed
        return matrix.astype(wanted, copy=False)


def _storage(values: pa.Array) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def _round_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Round to the nearest bfloat16, halves to even; NaN stays NaN."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), values, rounded.view(np.float32))


def _from_bfloat16(values: pa.FixedSizeBinaryArray) -> npt.NDArray[np.float32]:
    """Widen: the upper half of a float32 is a bfloat16."""
    data = np.frombuffer(values.buffers()[1], dtype="<u2")[values.offset :][: len(values)]
    wide = (data.astype(np.uint32) << 16).view(np.float32)
    if values.null_count:
        wide[~values.is_valid().to_numpy(zero_copy_only=False)] = np.nan
    return wide


def faiss_or_none() -> Any | None:
    """Return the faiss module, or None if it is not installed."""
    try:
        return faiss()
    except MissingPackageError:
        return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Let faiss use no further threads meanwhile: for little work they wait for each other."""
    library = faiss_or_none()
    if library is None:
        yield
        return
    before = library.omp_get_max_threads()
    library.omp_set_num_threads(1)
    try:
        yield
    finally:
        library.omp_set_num_threads(before)


def faiss() -> Any:
    """Return the faiss module; raise MissingPackageError if it is not installed."""
    return optional("faiss", extra="search", purpose="building a vector index")


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
        nearest = self._found[query]
        is_kept = ~np.isnan(distances)
        if self._within.lower is not None:
            is_kept &= distances >= self._within.lower
        if self._within.upper is not None:
            is_kept &= distances < self._within.upper
        if len(nearest) == self.k:
            is_kept &= distances <= nearest.distances[-1]
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
            np.concatenate([nearest.ids, ids[places]]), np.concatenate([nearest.distances, near])
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
        scores, places = library.knn(queries, vectors, k, measure)
    return (scores if is_l2 else 1 - scores), places


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
                rows, columns, near = _near(metric, anchors, candidates, limit)
                is_later = rows + first < columns + other
                if is_later.any():
                    yield (rows + first)[is_later], (columns + other)[is_later], near[is_later]


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


Tensor = index_pb2.Tensor

_TYPES = {
    Tensor.FLOAT16: "<f2",
    Tensor.FLOAT32: "<f4",
    Tensor.FLOAT64: "<f8",
    Tensor.UINT8: "u1",
}
_STORED = {
    Element.FLOAT16: Tensor.FLOAT16,
    Element.FLOAT32: Tensor.FLOAT32,
    Element.FLOAT64: Tensor.FLOAT64,
    Element.UINT8: Tensor.UINT8,
}


def encode_tensor(matrix: Matrix, element: Element) -> Tensor:
    """Encode a matrix in the element type of the indexed vectors."""
    kind = _STORED[element]
    data = np.ascontiguousarray(matrix, dtype=_TYPES[kind]).tobytes()
    return Tensor(data_type=kind, shape=matrix.shape, data=data)


def decode_tensor(tensor: Tensor, *, what: str) -> Matrix:
    """Decode a matrix; floats become float32."""
    kind = _TYPES.get(tensor.data_type)
    if kind is None:
        raise CorruptTableError(f"{what} have an unknown type of numbers")
    if len(tensor.data) != prod(tensor.shape) * np.dtype(kind).itemsize:
        raise CorruptTableError(f"{what} do not have the size that they state")
    matrix = np.frombuffer(tensor.data, dtype=kind).reshape(tuple(tensor.shape))
    return matrix if kind == "u1" else matrix.astype(np.float32)


_MATRIX = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Partitions:
    """Centers of the partitions, and the metric by which vectors belong to the nearest."""

    centers: Matrix
    metric: Metric
    loss: float | None = None

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return int(self.centers.shape[1])

    def is_same(self, other: Partitions) -> bool:
        """Whether vectors belong to the same partitions."""
        return self.metric is other.metric and np.array_equal(self.centers, other.centers)

    def by_distance(self, queries: Matrix) -> npt.NDArray[np.int64]:
        """Return the partitions for each query, the nearest first."""
        metric = Metric.L2 if self.metric is Metric.COSINE else self.metric
        by_center = distances(metric, queries, self.centers)
        return np.argsort(by_center, axis=1, kind="stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRows:
    """First row of each partition in a file, and the number of its rows."""

    starts: tuple[int, ...]
    counts: tuple[int, ...]

    @staticmethod
    def of(counts: npt.NDArray[np.int64]) -> PartitionRows:
        """Return partitions one after the other."""
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(counts) else counts
        return PartitionRows(starts=tuple(starts.tolist()), counts=tuple(counts.tolist()))


def encode_centers(partitions: Partitions, element: Element, rows: PartitionRows) -> bytes:
    """Encode centers with the rows of the graph of each partition; zero rows without graphs."""
    message = index_pb2.IVF(offsets=rows.starts, lengths=rows.counts)
    message.centroids_tensor.CopyFrom(encode_tensor(partitions.centers, element))
    if partitions.loss is not None:
        message.loss = partitions.loss
    return message.SerializeToString()


def encode_rows(rows: PartitionRows) -> bytes:
    """Encode the rows of each partition."""
    return index_pb2.IVF(offsets=rows.starts, lengths=rows.counts).SerializeToString()


def decode_centers(data: bytes, metric: Metric) -> tuple[Partitions, PartitionRows]:
    """Decode centers and the rows of the graphs."""
    message = _message(data)
    centers = decode_tensor(message.centroids_tensor, what="centers of partitions")
    if centers.ndim != _MATRIX:
        raise CorruptTableError("centers of partitions are not a matrix")
    loss = message.loss if message.HasField("loss") else None
    return Partitions(centers=centers, metric=metric, loss=loss), _rows(message)


def decode_rows(data: bytes, total: int) -> PartitionRows:
    """Decode the rows of each partition, which must be among `total` rows."""
    rows = _rows(_message(data))
    for start, count in zip(rows.starts, rows.counts, strict=True):
        if start + count > total:
            raise CorruptTableError(f"a partition ends at row {start + count} of {total}")
    return rows


def _message(data: bytes) -> index_pb2.IVF:
    message = index_pb2.IVF()
    parse(message, data, what="partitions of a vector index")
    return message


def _rows(message: index_pb2.IVF) -> PartitionRows:
    if len(message.offsets) != len(message.lengths):
        raise CorruptTableError("partitions of a vector index have no row counts")
    return PartitionRows(starts=tuple(message.offsets), counts=tuple(message.lengths))
