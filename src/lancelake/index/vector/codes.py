"""How vectors are stored in an index, and how their distances to a query are computed."""

from __future__ import annotations

from collections.abc import Mapping
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
    def column(self) -> str:
        """Column of the codes in the file of the rows."""
        ...

    @property
    def encodes_residuals(self) -> bool:
        """Whether differences to the center of a partition are stored, instead of the vectors."""
        ...

    @property
    def has_distances(self) -> bool:
        """Whether distances can be computed from the codes."""
        ...

    def field(self) -> pa.Field:
        """Return the column of the codes."""
        ...

    def metadata(self) -> Mapping[str, Any]:
        """Return what is stored about the codes, besides buffers."""
        ...

    def buffer(self) -> bytes | None:
        """Return what is stored in a buffer."""
        ...

    def encode(self, vectors: Matrix) -> CodeMatrix:
        """Encode vectors, or their residuals."""
        ...

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return vectors near those that were encoded."""
        ...

    def stored(self, codes: CodeMatrix) -> npt.NDArray[Any]:
        """Return the values of the column for the codes of one partition."""
        ...

    def loaded(self, values: npt.NDArray[Any], rows: int) -> CodeMatrix:
        """Return the codes of one partition in the layout that `distances` reads."""
        ...

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes, one row each."""
        ...

    def distances(self, queries: Matrix, loaded: CodeMatrix) -> Distances:
        """Return the distance of each query (row) to each vector of a partition (column).

        If residuals are encoded, the queries are residuals, too.
        """
        ...

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Return the distances and places of the `k` nearest vectors for each query.

        Places are negative where there are fewer. None if `distances` is as fast.
        """
        ...


def scored(values: npt.NDArray[Any]) -> Distances:
    """Return distances in the type of the result."""
    return values.astype(np.float32, copy=False)
