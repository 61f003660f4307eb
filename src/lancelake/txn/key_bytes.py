"""Encoding of keys as bytes: one binary value per row, null for incomplete keys."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import UnsupportedError

_SEPARATOR = b"\x00"
_INT64_BYTES = 8

# Logical types for which official releases record keys as well.
_RECORDED_BY_ALL = frozenset(
    {
        "int32",
        "int64",
        "uint32",
        "uint64",
        "string",
        "large_string",
        "binary",
        "large_binary",
    }
)


def encoded(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the bytes of each row's key; a key of several parts ends each with a zero byte."""
    parts = [_encoded(c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c) for c in columns]
    if len(parts) == 1:
        return parts[0]
    end = pa.scalar(b"", pa.large_binary())
    separator = pa.scalar(_SEPARATOR, pa.large_binary())
    return pc.binary_join_element_wise(*parts, end, separator)


def recorded_by_all(logical_type: str) -> bool:
    """Whether official releases record keys of this type as well."""
    return logical_type in _RECORDED_BY_ALL


def _encoded(column: pa.Array) -> pa.Array:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _encoded(column.storage)
    if pa.types.is_dictionary(kind):
        return _encoded(column.dictionary_decode())
    if _is_text_or_bytes(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal(kind):
        return _fixed_width(column, kind.byte_width)
    if pa.types.is_floating(kind):
        return _from_words(_plain_floats(column), column)
    if pa.types.is_boolean(kind):
        return _from_words(_filled(column.cast(pa.uint8())).astype(np.uint64), column)
    if pa.types.is_integer(kind):
        wide = pa.int64() if pa.types.is_signed_integer(kind) else pa.uint64()
        return _from_words(_filled(column.cast(wide)), column)
    if pa.types.is_temporal(kind) and kind.bit_width in (32, 64):
        return _from_words(_filled(column.view(f"int{kind.bit_width}").cast(pa.int64())), column)
    msg = f"a key of type {kind} cannot be recorded"
    raise UnsupportedError(msg, type=str(kind), action="Use a key of another type.")


def _is_text_or_bytes(kind: pa.DataType) -> bool:
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_binary_view,
    )
    return any(check(kind) for check in checks)


def _filled(column: pa.Array) -> np.ndarray:
    zero = pa.scalar(0, column.type)
    return np.asarray(pc.fill_null(column, zero).to_numpy(zero_copy_only=False))


def _plain_floats(column: pa.Array) -> np.ndarray:
    """Normalize equal numbers to equal bits: one zero, one NaN."""
    values = _filled(column.cast(pa.float64())) + 0.0
    values[np.isnan(values)] = np.nan
    return np.asarray(values.view(np.uint64))


def _from_words(words: np.ndarray, column: pa.Array) -> pa.Array:
    data = words.astype("<i8" if words.dtype.kind == "i" else "<u8").tobytes()
    return _from_bytes(data, _INT64_BYTES, column)


def _fixed_width(column: pa.Array, width: int) -> pa.Array:
    buffer = column.buffers()[1]
    start = column.offset * width
    data = b"" if buffer is None else buffer.to_pybytes()[start : start + len(column) * width]
    return _from_bytes(data, width, column)


def _from_bytes(data: bytes, width: int, column: pa.Array) -> pa.Array:
    offsets = np.arange(len(column) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    plain = pa.Array.from_buffers(pa.large_binary(), len(column), buffers)
    if not column.null_count:
        return plain
    return pc.if_else(column.is_valid(), plain, pa.scalar(None, pa.large_binary()))
