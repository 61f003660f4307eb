"""Codes of vectors: as they are, as steps between bounds, and as numbers of sub-vectors."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.vectors import (
    Distances,
    Element,
    Matrix,
    Metric,
    Nearest,
    distances,
    encode_tensor,
    faiss,
    faiss_or_none,
    nearest_vectors,
    one_thread,
)

CodeMatrix: TypeAlias = npt.NDArray[Any]
"""Stored vectors, one per row."""


class Codes(ABC):
    """A way of storing vectors.

    With cosine distance, vectors and queries are normalized by the caller.
    """

    __slots__ = ()

    name: ClassVar[str]
    """FLAT, SQ, PQ or RQ."""

    @property
    def encodes_residuals(self) -> bool:
        """Whether differences from the centers of partitions are stored."""
        return False

    @abstractmethod
    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns of the codes in the file of the rows."""

    @abstractmethod
    def metadata(self) -> Mapping[str, Any]:
        """Return what is stored about the codes, besides buffers."""

    def buffer(self) -> bytes | None:
        """Return what is stored in a buffer; None if nothing is."""
        return None

    def turned(self, vectors: Matrix) -> Matrix:
        """Return queries or centers in the coordinates in which distances are computed."""
        return vectors

    @abstractmethod
    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Encode vectors, given the center of the partition of each."""

    @abstractmethod
    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return vectors near those that were encoded, or residuals if residuals are encoded."""

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of the columns for the codes of one partition."""
        return (codes.reshape(-1),)

    @abstractmethod
    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of one partition in the layout that `distances` reads."""

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes, one row each."""
        return loaded

    @abstractmethod
    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Return the distance of each query (row) to each vector of a partition (column).

        Queries and the center of the partition are in the coordinates of `turned`.
        """

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Return the distances and places of the `k` nearest vectors for each query.

        Places are negative where there are fewer. None if `distances` is as fast.
        """
        return None


def as_distances(values: npt.NDArray[Any]) -> Distances:
    """Return distances in the type of the result."""
    return values.astype(np.float32, copy=False)


_STEPS = 255
# Rows that are widened to floats at once: they stay in the CPU cache.
_CHUNK_ROWS = 1 << 12
# For so many queries it is faster to decode the codes once.
_MANY_QUERIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarCodes(Codes):
    """Values as steps from the lower to the upper bound; values outside are cut."""

    dimension: int
    metric: Metric
    lower: float
    upper: float

    name = "SQ"
    column = "__sq_code"

    @property
    def _step(self) -> float:
        return (self.upper - self.lower) / _STEPS

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the column of the codes."""
        return (pa.field(self.column, pa.list_(pa.uint8(), self.dimension)),)

    def metadata(self) -> Mapping[str, Any]:
        """Return the dimension and the bounds."""
        bounds = {"start": self.lower, "end": self.upper}
        return {"dim": self.dimension, "num_bits": 8, "bounds": bounds}

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Return the number of full steps of each value."""
        if self.upper <= self.lower:
            return np.zeros(vectors.shape, dtype=np.uint8)
        steps = (vectors.astype(np.float64) - self.lower) * _STEPS / (self.upper - self.lower)
        return np.clip(steps, 0, _STEPS).astype(np.uint8)

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return the values in the middle of the steps."""
        return ((codes + np.float32(0.5)) * np.float32(self._step)).astype(np.float32) + np.float32(
            self.lower
        )

    def translated(self, codes: CodeMatrix, source: ScalarCodes) -> CodeMatrix:
        """Return codes of other bounds as codes of these."""
        if (source.lower, source.upper) == (self.lower, self.upper):
            return codes
        values = source.decode(codes)
        return self.encode(values, values)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition."""
        return values[0].reshape(rows, self.dimension)

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Return the distances of the decoded vectors to the queries."""
        result = np.empty((len(queries), len(loaded)), dtype=np.float32)
        for start in range(0, len(loaded), _CHUNK_ROWS):
            part = loaded[start : start + _CHUNK_ROWS].astype(np.float32)
            result[:, start : start + _CHUNK_ROWS] = self._of_steps(queries, part)
        return result

    def _of_steps(self, queries: Matrix, codes: Matrix) -> Distances:
        if self.metric is Metric.DOT:
            return as_distances(1 - queries @ self.decode(codes).T)
        steps = self._steps(queries)
        squares = np.einsum("ij,ij->i", codes, codes)
        squares_found = (
            squares + np.einsum("ij,ij->i", steps, steps)[:, np.newaxis] - 2 * steps @ codes.T
        )
        squares_found *= np.float32(self._step**2)
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return as_distances(squares_found / 2 if self.metric is Metric.COSINE else squares_found)

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Let faiss compute distances: of the codes, or of their values for many queries."""
        library = faiss_or_none()
        if library is None or self.upper <= self.lower:
            return None
        metric = Metric.DOT if self.metric is Metric.DOT else Metric.L2
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        if len(queries) >= _MANY_QUERIES:
            result = nearest_vectors(metric, queries, self.decode(loaded), k)
        else:
            result = self._scan(library, metric, queries, loaded, k)
        if result is None or self.metric is not Metric.COSINE:
            return result
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return as_distances(result[0] / 2), result[1]

    def _scan(
        self, library: Any, metric: Metric, queries: Matrix, loaded: CodeMatrix, k: int
    ) -> Nearest:
        """Let faiss scan codes, whose meaning is that of its uniform 8-bit quantizer."""
        is_dot = metric is Metric.DOT
        index = library.IndexScalarQuantizer(
            self.dimension,
            library.ScalarQuantizer.QT_8bit_uniform,
            library.METRIC_INNER_PRODUCT if is_dot else library.METRIC_L2,
        )
        bounds = np.array([self.lower, self.upper - self.lower], dtype=np.float32)
        library.copy_array_to_vector(bounds, index.sq.trained)
        index.is_trained = True
        library.copy_array_to_vector(loaded.reshape(-1), index.codes)
        index.ntotal = len(loaded)
        with one_thread():
            distances_found, places = index.search(queries, k)
        return (1 - distances_found if is_dot else distances_found), places

    def _steps(self, queries: Matrix) -> Matrix:
        """Return queries in steps; the middle of a step is what its code means."""
        if self.upper <= self.lower:
            return np.zeros(queries.shape, dtype=np.float32)
        steps = (queries - np.float32(self.lower)) / np.float32(self._step) - np.float32(0.5)
        return steps.astype(np.float32)


def spanning_codes(several: Sequence[ScalarCodes]) -> ScalarCodes:
    """Return codes whose bounds enclose those of several ones of the same vectors."""
    lower, upper = min(each.lower for each in several), max(each.upper for each in several)
    return replace(several[0], lower=lower, upper=upper)


_STORED = {
    Element.FLOAT16: pa.float16(),
    Element.FLOAT32: pa.float32(),
    Element.FLOAT64: pa.float64(),
    Element.UINT8: pa.uint8(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatCodes(Codes):
    """Vectors as they are; those of a cosine index are normalized."""

    dimension: int
    element: Element
    metric: Metric

    name = "FLAT"
    column = "flat"

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the column of the vectors."""
        # Release 4.0.2 cannot read other floats than float32, not even its own.
        return (pa.field(self.column, pa.list_(_STORED[self.element], self.dimension)),)

    def metadata(self) -> Mapping[str, Any]:
        """Return the dimension."""
        return {"dim": self.dimension}

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Return the vectors in the type of the column."""
        return self._cast(vectors)

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return the vectors."""
        return self.loaded((codes,), len(codes))

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the vectors of a partition in the type in which distances are computed."""
        matrix = values[0].reshape(rows, self.dimension)
        return matrix if self.element is Element.UINT8 else matrix.astype(np.float32, copy=False)

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded vectors in the type of the column."""
        return self._cast(loaded)

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Return exact distances."""
        if self.metric is Metric.COSINE:
            return distances(Metric.DOT, queries, loaded)
        return distances(self.metric, queries, loaded)

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Let faiss find the nearest vectors."""
        return nearest_vectors(self.metric, queries, loaded, k)

    def _cast(self, vectors: Matrix) -> CodeMatrix:
        return vectors.astype(_STORED[self.element].to_pandas_dtype(), copy=False)


_BYTE = 8
_NIBBLE = 4
_LOW = np.uint8(15)
_quantizers = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductCodes(Codes):
    """Numbers of sub-vectors in a codebook of `parts` x `2 ** bits` sub-vectors."""

    metric: Metric
    element: Element
    bits: int
    codebook: npt.NDArray[np.float32]
    is_transposed: bool = True

    name = "PQ"
    column = "__pq_code"

    @property
    def encodes_residuals(self) -> bool:
        """Whether residuals are stored; their products with queries are not those of vectors."""
        return self.metric is not Metric.DOT

    @property
    def parts(self) -> int:
        """Number of sub-vectors of a vector."""
        return int(self.codebook.shape[0])

    @property
    def dimension(self) -> int:
        """Number of values of a vector."""
        return self.parts * int(self.codebook.shape[2])

    @property
    def _width(self) -> int:
        return self.parts * self.bits // _BYTE

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the column of the codes."""
        return (pa.field(self.column, pa.list_(pa.uint8(), self._width)),)

    def metadata(self) -> Mapping[str, Any]:
        """Return the sizes of the codebook."""
        return {
            "codebook_position": 2,
            "nbits": self.bits,
            "num_sub_vectors": self.parts,
            "dimension": self.dimension,
            "codebook_tensor": [],
            "transposed": self.is_transposed,
        }

    def buffer(self) -> bytes | None:
        """Return the codebook, one part after the other, under the shape of whole vectors."""
        shape = self.codebook.reshape(1 << self.bits, self.dimension)
        return encode_tensor(shape, self.element).SerializeToString()

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Return the numbers of the nearest sub-vectors."""
        vectors = self._residuals(vectors, centers)
        quantizer = self._new_quantizer(faiss())
        codes: CodeMatrix = quantizer.compute_codes(np.ascontiguousarray(vectors, dtype=np.float32))
        return codes

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return the sub-vectors of the codes, joined."""
        numbers = self._numbers(codes.T)
        joined = np.stack([self.codebook[part][numbers[part]] for part in range(self.parts)], 1)
        return joined.reshape(len(codes), self.dimension)

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the bytes of a partition: the first of all rows, the second of all rows, ...

        Codes that are not transposed are stored row by row.
        """
        columns = codes.T if self.is_transposed else codes
        return (np.ascontiguousarray(columns).reshape(-1),)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition, one row each."""
        if self.is_transposed:
            return np.ascontiguousarray(values[0].reshape(self._width, rows).T)
        return values[0].reshape(rows, self._width)

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Sum the distances of sub-vectors, which are computed once for each query."""
        numbers = self._numbers(loaded.T)
        tables = self._tables(self._residuals(queries, center))
        result = np.zeros((len(queries), len(loaded)), dtype=np.float32)
        for part, row in enumerate(numbers):
            for place in range(len(queries)):
                result[place] += tables[place, part].take(row)
        if self.metric is Metric.DOT:
            return as_distances(1 - result)
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return as_distances(result / 2 if self.metric is Metric.COSINE else result)

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Let faiss sum the distances of sub-vectors."""
        library = faiss_or_none()
        if library is None:
            return None
        is_dot = self.metric is Metric.DOT
        quantizer = self._quantizer(library)
        asked = np.ascontiguousarray(self._residuals(queries, center), dtype=np.float32)
        codes = np.ascontiguousarray(loaded)
        result = np.empty((len(asked), k), dtype=np.float32)
        places = np.empty((len(asked), k), dtype=np.int64)
        # The codes are read where they are; an index of faiss would have a copy of them.
        heap = library.float_minheap_array_t() if is_dot else library.float_maxheap_array_t()
        heap.nh, heap.k = len(asked), k
        heap.ids, heap.val = library.swig_ptr(places), library.swig_ptr(result)
        search = quantizer.search_ip if is_dot else quantizer.search
        search(library.swig_ptr(asked), len(asked), library.swig_ptr(codes), len(codes), heap, True)
        if is_dot:
            return as_distances(1 - result), places
        return as_distances(result / 2 if self.metric is Metric.COSINE else result), places

    def _residuals(self, vectors: Matrix, centers: Matrix) -> Matrix:
        return vectors - centers if self.encodes_residuals else vectors

    def _quantizer(self, library: Any) -> Any:
        """Return a quantizer of faiss with the codebook, one for each thread."""
        cached: tuple[ProductCodes, Any] | None = getattr(_quantizers, "last", None)
        if cached is not None and cached[0] is self:
            return cached[1]
        quantizer = self._new_quantizer(library)
        _quantizers.last = (self, quantizer)
        return quantizer

    def _new_quantizer(self, library: Any) -> Any:
        quantizer = library.ProductQuantizer(self.dimension, self.parts, self.bits)
        library.copy_array_to_vector(self.codebook.reshape(-1), quantizer.centroids)
        return quantizer

    def _tables(self, queries: Matrix) -> npt.NDArray[np.float32]:
        """Return the distance of each part of the queries to each sub-vector."""
        parts = queries.reshape(len(queries), self.parts, 1, -1)
        if self.metric is Metric.DOT:
            tables_found = np.einsum("qpos,pcs->qpc", parts, self.codebook)
        else:
            difference = self.codebook[np.newaxis] - parts
            tables_found = np.einsum("qpcs,qpcs->qpc", difference, difference)
        return as_distances(tables_found)

    def _numbers(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return the numbers of sub-vectors, a row for each part."""
        if self.bits == _BYTE:
            return loaded
        numbers = np.empty((2 * len(loaded), loaded.shape[1]), dtype=np.uint8)
        numbers[0::2], numbers[1::2] = loaded & _LOW, loaded >> _NIBBLE
        return numbers
