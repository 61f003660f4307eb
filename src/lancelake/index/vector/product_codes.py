"""PQ codes: the nearest of a few sub-vectors for each part of a vector."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.codes import CodeMatrix, scored
from lancelake.index.vector.faiss_library import faiss, faiss_or_none
from lancelake.index.vector.metric import Distances, Matrix, Metric
from lancelake.index.vector.tensors import encode_tensor
from lancelake.index.vector.vectors import Element

_BYTE = 8
_NIBBLE = 4
_LOW = np.uint8(15)
_quantizers = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductCodes:
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

    def turned(self, vectors: Matrix) -> Matrix:
        """Return vectors as they are."""
        return vectors

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
        chosen = codes.T if self.is_transposed else codes
        return (np.ascontiguousarray(chosen).reshape(-1),)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition, one row each."""
        if self.is_transposed:
            return np.ascontiguousarray(values[0].reshape(self._width, rows).T)
        return values[0].reshape(rows, self._width)

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes."""
        return loaded

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Sum the distances of sub-vectors, which are computed once for each query."""
        numbers = self._numbers(loaded.T)
        tables = self._tables(self._residuals(queries, center))
        found = np.zeros((len(queries), len(loaded)), dtype=np.float32)
        for part, chosen in enumerate(numbers):
            for place in range(len(queries)):
                found[place] += tables[place, part].take(chosen)
        if self.metric is Metric.DOT:
            return scored(1 - found)
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return scored(found / 2 if self.metric is Metric.COSINE else found)

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
        found = np.empty((len(asked), k), dtype=np.float32)
        places = np.empty((len(asked), k), dtype=np.int64)
        # The codes are read where they are; an index of faiss would have a copy of them.
        heap = library.float_minheap_array_t() if is_dot else library.float_maxheap_array_t()
        heap.nh, heap.k = len(asked), k
        heap.ids, heap.val = library.swig_ptr(places), library.swig_ptr(found)
        search = quantizer.search_ip if is_dot else quantizer.search
        search(library.swig_ptr(asked), len(asked), library.swig_ptr(codes), len(codes), heap, True)
        if is_dot:
            return scored(1 - found), places
        return scored(found / 2 if self.metric is Metric.COSINE else found), places

    def _residuals(self, vectors: Matrix, centers: Matrix) -> Matrix:
        return vectors - centers if self.encodes_residuals else vectors

    def _quantizer(self, library: Any) -> Any:
        """Return a quantizer of faiss with the codebook, one for each thread."""
        known: tuple[ProductCodes, Any] | None = getattr(_quantizers, "last", None)
        if known is not None and known[0] is self:
            return known[1]
        found = self._new_quantizer(library)
        _quantizers.last = (self, found)
        return found

    def _new_quantizer(self, library: Any) -> Any:
        found = library.ProductQuantizer(self.dimension, self.parts, self.bits)
        library.copy_array_to_vector(self.codebook.reshape(-1), found.centroids)
        return found

    def _tables(self, queries: Matrix) -> npt.NDArray[np.float32]:
        """Return the distance of each part of the queries to each sub-vector."""
        parts = queries.reshape(len(queries), self.parts, 1, -1)
        if self.metric is Metric.DOT:
            found = np.einsum("qpos,pcs->qpc", parts, self.codebook)
        else:
            difference = self.codebook[np.newaxis] - parts
            found = np.einsum("qpcs,qpcs->qpc", difference, difference)
        return scored(found)

    def _numbers(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return the numbers of sub-vectors, a row for each part."""
        if self.bits == _BYTE:
            return loaded
        numbers = np.empty((2 * len(loaded), loaded.shape[1]), dtype=np.uint8)
        numbers[0::2], numbers[1::2] = loaded & _LOW, loaded >> _NIBBLE
        return numbers
