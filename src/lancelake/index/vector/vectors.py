"""Vector columns: their element type and dimension, and their values as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.index.vector.metric import Matrix, Metric

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
            queries = _rounded_to_bfloat16(queries)
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


def _rounded_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
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
