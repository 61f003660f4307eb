"""RQ codes, which are not decoded: rows are ranked by their stored vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import UnsupportedError
from lancelake.index.vector.codes import CodeMatrix
from lancelake.index.vector.metric import Distances, Matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueCodes:
    """Codes of which only the row ids are read."""

    name: str
    settings: Mapping[str, Any]

    column = "_rabit_codes"
    encodes_residuals = False
    has_distances = False

    def field(self) -> pa.Field:
        """Refuse: such codes are not written."""
        raise self._unsupported()

    def metadata(self) -> Mapping[str, Any]:
        """Return the settings of the file."""
        return self.settings

    def buffer(self) -> bytes | None:
        """Refuse: such codes are not written."""
        raise self._unsupported()

    def encode(self, vectors: Matrix) -> CodeMatrix:
        """Refuse: such codes are not written."""
        raise self._unsupported()

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Refuse: such codes are not read."""
        raise self._unsupported()

    def stored(self, codes: CodeMatrix) -> npt.NDArray[Any]:
        """Refuse: such codes are not written."""
        raise self._unsupported()

    def loaded(self, values: npt.NDArray[Any], rows: int) -> CodeMatrix:
        """Return the values as they are."""
        return values

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Refuse: such codes are not written."""
        raise self._unsupported()

    def distances(self, queries: Matrix, loaded: CodeMatrix) -> Distances:
        """Refuse: such codes are not read."""
        raise self._unsupported()

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Refuse: such codes are not read."""
        raise self._unsupported()

    def _unsupported(self) -> UnsupportedError:
        return UnsupportedError(
            f"{self.name} codes of a vector index are not written or decoded",
            action="Build the index again, as IVF_PQ or IVF_SQ.",
        )
