"""Matrices in the global buffers of index files."""

from __future__ import annotations

from math import prod

import numpy as np

from lancelake.errors import CorruptTableError
from lancelake.index.vector.metric import Matrix
from lancelake.index.vector.vectors import Element
from lancelake.proto import index_pb2

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
    found = np.frombuffer(tensor.data, dtype=kind).reshape(tuple(tensor.shape))
    return found if kind == "u1" else found.astype(np.float32)
