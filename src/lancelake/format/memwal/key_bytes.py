"""Byte forms of primary keys: for the bloom filter, and for the index of a key of several columns.

Keys have no nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import UnsupportedError

_BYTES = pa.large_binary()
_SIGN = np.uint64(1 << 63)


def is_supported(kind: pa.DataType) -> bool:
    """Whether releases take key columns of a type."""
    is_number = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
    return bool(is_number or is_text(kind) or is_binary(kind))


def is_hashed(kind: pa.DataType) -> bool:
    """Whether the bloom filter has the values of a type; of others it has a constant."""
    is_number = pa.types.is_int32(kind) or pa.types.is_int64(kind)
    return bool(is_number or pa.types.is_string(kind) or pa.types.is_binary(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is that of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_binary(kind: pa.DataType) -> bool:
    """Whether a type is that of bytes of any length."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def for_bloom(columns: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    """Return what the bloom filter hashes of each key: a null mark and the value by column."""
    return _joined([part for column in columns for part in (b"\x00", *_bloom_parts(column))])


def for_index(columns: Sequence[pa.Array]) -> pa.LargeBinaryArray:
    """Return each key of several columns as bytes that sort as the columns do."""
    return _joined([part for column in columns for part in (b"\x01", *_index_parts(column))])


def _bloom_parts(column: pa.Array) -> list[pa.Array | bytes]:
    kind = column.type
    if not is_hashed(kind):
        return []
    if pa.types.is_string(kind):
        return [column.cast(_BYTES), b"\xff"]
    if pa.types.is_binary(kind):
        lengths = pc.binary_length(column).to_numpy(zero_copy_only=False).astype("<u8")
        return [_rows(lengths.view(np.uint8).reshape(len(column), -1)), column.cast(_BYTES)]
    values = column.to_numpy(zero_copy_only=False)
    little = values.astype(values.dtype.newbyteorder("<"))
    return [_rows(little.view(np.uint8).reshape(len(column), -1))]


def _index_parts(column: pa.Array) -> list[pa.Array | bytes]:
    kind = column.type
    if is_text(kind) or is_binary(kind):
        plain = column.cast(_BYTES)
        return [pc.replace_substring(plain, b"\x00", b"\x00\xff"), b"\x00\x00"]
    if pa.types.is_boolean(kind):
        values = column.cast(pa.uint8()).to_numpy(zero_copy_only=False)
        return [_rows(values.reshape(-1, 1))]
    if pa.types.is_unsigned_integer(kind):
        words = column.cast(pa.uint64()).to_numpy(zero_copy_only=False)
    elif pa.types.is_integer(kind):
        signed = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        words = signed.view(np.uint64) ^ _SIGN
    else:
        raise UnsupportedError(f"a MemWAL key cannot have the type {kind}", type=str(kind))
    return [_rows(words.astype(">u8").view(np.uint8).reshape(len(column), -1))]


def _rows(matrix: npt.NDArray[np.uint8]) -> pa.LargeBinaryArray:
    count, width = matrix.shape
    offsets = np.arange(count + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(matrix.tobytes())]
    return pa.Array.from_buffers(_BYTES, count, buffers)


def _joined(parts: Sequence[pa.Array | bytes]) -> pa.LargeBinaryArray:
    given = [pa.scalar(p, _BYTES) if isinstance(p, bytes) else p for p in parts]
    if not any(isinstance(p, pa.Array) for p in given):
        raise UnsupportedError("the bloom filter does not have keys of this type")
    return pc.binary_join_element_wise(*given, pa.scalar(b"", _BYTES))
