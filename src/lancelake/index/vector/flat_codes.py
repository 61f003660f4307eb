"""FLAT codes: the vectors themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.codes import CodeMatrix
from lancelake.index.vector.knn import nearest_vectors
from lancelake.index.vector.metric import Distances, Matrix, Metric, distances
from lancelake.index.vector.vectors import Element

_STORED = {
    Element.FLOAT16: pa.float16(),
    Element.FLOAT32: pa.float32(),
    Element.FLOAT64: pa.float64(),
    Element.UINT8: pa.uint8(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatCodes:
    """Vectors as they are; those of a cosine index are normalized."""

    dimension: int
    element: Element
    metric: Metric

    name = "FLAT"
    encodes_residuals = False
    column = "flat"

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the column of the vectors."""
        # Release 4.0.2 cannot read other floats than float32, not even its own.
        return (pa.field(self.column, pa.list_(_STORED[self.element], self.dimension)),)

    def metadata(self) -> Mapping[str, Any]:
        """Return the dimension."""
        return {"dim": self.dimension}

    def buffer(self) -> bytes | None:
        """Return None: nothing is in a buffer."""
        return None

    def turned(self, vectors: Matrix) -> Matrix:
        """Return vectors as they are."""
        return vectors

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Return the vectors in the type of the column."""
        return self._typed(vectors)

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return the vectors."""
        return self.loaded((codes,), len(codes))

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of a partition."""
        return (codes.reshape(-1),)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the vectors of a partition in the type in which distances are computed."""
        matrix = values[0].reshape(rows, self.dimension)
        return matrix if self.element is Element.UINT8 else matrix.astype(np.float32, copy=False)

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded vectors in the type of the column."""
        return self._typed(loaded)

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

    def _typed(self, vectors: Matrix) -> CodeMatrix:
        return vectors.astype(_STORED[self.element].to_pandas_dtype(), copy=False)
