"""SQ codes: one byte for each value of a vector, between common bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.codes import CodeMatrix, scored
from lancelake.index.vector.faiss_library import faiss_or_none, one_thread
from lancelake.index.vector.knn import Nearest, nearest_vectors
from lancelake.index.vector.metric import Distances, Matrix, Metric

_STEPS = 255
# Rows that are widened to floats at once: they stay in the CPU cache.
_CHUNK_ROWS = 1 << 12
# For so many queries it is faster to decode the codes once.
_MANY_QUERIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarCodes:
    """Values as steps from the lower to the upper bound; values outside are cut."""

    dimension: int
    metric: Metric
    lower: float
    upper: float

    name = "SQ"
    encodes_residuals = False
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

    def buffer(self) -> bytes | None:
        """Return None: nothing is in a buffer."""
        return None

    def turned(self, vectors: Matrix) -> Matrix:
        """Return vectors as they are."""
        return vectors

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

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of a partition."""
        return (codes.reshape(-1),)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition."""
        return values[0].reshape(rows, self.dimension)

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes."""
        return loaded

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Return the distances of the decoded vectors to the queries."""
        found = np.empty((len(queries), len(loaded)), dtype=np.float32)
        for start in range(0, len(loaded), _CHUNK_ROWS):
            part = loaded[start : start + _CHUNK_ROWS].astype(np.float32)
            found[:, start : start + _CHUNK_ROWS] = self._of_steps(queries, part)
        return found

    def _of_steps(self, queries: Matrix, codes: Matrix) -> Distances:
        if self.metric is Metric.DOT:
            return scored(1 - queries @ self.decode(codes).T)
        steps = self._steps(queries)
        squares = np.einsum("ij,ij->i", codes, codes)
        found = squares + np.einsum("ij,ij->i", steps, steps)[:, np.newaxis] - 2 * steps @ codes.T
        found *= np.float32(self._step**2)
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return scored(found / 2 if self.metric is Metric.COSINE else found)

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
            found = nearest_vectors(metric, queries, self.decode(loaded), k)
        else:
            found = self._scanned(library, metric, queries, loaded, k)
        if found is None or self.metric is not Metric.COSINE:
            return found
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return scored(found[0] / 2), found[1]

    def _scanned(
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
            found, places = index.search(queries, k)
        return (1 - found if is_dot else found), places

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
