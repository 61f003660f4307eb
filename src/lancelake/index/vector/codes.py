"""Codes of the vectors of an index, and distances of a query to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.metric import Distances, Matrix

CodeMatrix: TypeAlias = npt.NDArray[Any]
"""Stored vectors, one per row."""


class Codes(Protocol):
    """A way of storing vectors.

    With cosine distance, vectors and queries are normalized by the caller.
    """

    @property
    def name(self) -> str:
        """FLAT, SQ, PQ or RQ."""
        ...

    @property
    def encodes_residuals(self) -> bool:
        """Whether differences from the centers of partitions are stored."""
        ...

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns of the codes in the file of the rows."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """Return what is stored about the codes, besides buffers."""
        ...

    def buffer(self) -> bytes | None:
        """Return what is stored in a buffer."""
        ...

    def turned(self, vectors: Matrix) -> Matrix:
        """Return queries or centers in the coordinates in which distances are computed."""
        ...

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Encode vectors, given the center of the partition of each."""
        ...

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return vectors near those that were encoded, or residuals if residuals are encoded."""
        ...

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of the columns for the codes of one partition."""
        ...

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of one partition in the layout that `distances` reads."""
        ...

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes, one row each."""
        ...

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Return the distance of each query (row) to each vector of a partition (column).

        Queries and the center of the partition are in the coordinates of `turned`.
        """
        ...

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Return the distances and places of the `k` nearest vectors for each query.

        Places are negative where there are fewer. None if `distances` is as fast.
        """
        ...


def scored(values: npt.NDArray[Any]) -> Distances:
    """Return distances in the type of the result."""
    return values.astype(np.float32, copy=False)
