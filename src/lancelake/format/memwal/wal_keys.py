"""Keys of a MemWAL: as bytes, hashed to a bucket, in Bloom filters.

Keys have no nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format import hashing
from lancelake.format.hashing import by_length

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


U32 = npt.NDArray[np.uint32]
_WORD_BYTES = 4


def buckets(values: pa.Array, count: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each value; null is in bucket 0."""
    positive = (hashes(values) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return (positive % count).astype(np.int32)


def hashes(values: pa.Array) -> U32:
    """Return the hash of each value; 0 for null."""
    hashes = np.zeros(len(values), dtype=np.uint32)
    valid = np.asarray(pc.is_valid(values))
    # Also without any value, which tells whether the type can be hashed.
    hashes[valid] = _hashes(pc.drop_null(values))
    return hashes


def _hashes(values: pa.Array) -> U32:
    kind = values.type
    if is_text(kind):
        return _text(values.cast(pa.large_string()).cast(pa.large_binary()))
    if pa.types.is_floating(kind) and kind.bit_width > 16:  # noqa: PLR2004  # no release hashes float16
        numbers = values.to_numpy(zero_copy_only=False) + 0.0
        numbers[np.isnan(numbers)] = np.nan
        return _words(numbers.view(f"u{kind.bit_width // 8}"))
    if pa.types.is_boolean(kind):
        return _words(values.cast(pa.uint8()).to_numpy(zero_copy_only=False).astype(np.uint32))
    if pa.types.is_integer(kind):
        numbers = values.to_numpy(zero_copy_only=False)
    elif pa.types.is_date32(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        numbers = values.view(f"int{kind.bit_width}").to_numpy(zero_copy_only=False)
    else:
        msg = f"a column of type {kind} cannot be divided into buckets"
        action = "Name another key column first, or do not divide rows: unsharded=True in Python."
        raise UnsupportedError(msg, type=str(kind), action=action)
    # Narrow numbers are widened with their sign.
    return _words(
        numbers.astype(f"i{max(4, numbers.dtype.itemsize)}").view(
            f"u{max(4, numbers.dtype.itemsize)}"
        )
    )


def _words(numbers: npt.NDArray[np.unsignedinteger]) -> U32:
    wide = numbers.astype(np.uint64)
    state = np.zeros(len(wide), dtype=np.uint32)
    size = numbers.dtype.itemsize
    for shift in range(0, size * 8, 32):
        state = _mixed(
            state, ((wide >> np.uint64(shift)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        )
    return _finished(state, size)


def _text(values: pa.LargeBinaryArray) -> U32:
    result = np.empty(len(values), dtype=np.uint32)
    for places, rows in by_length(values):
        count, length = rows.shape
        whole = length - length % _WORD_BYTES
        state = np.zeros(count, dtype=np.uint32)
        words = np.ascontiguousarray(rows[:, :whole]).view("<u4")
        for i in range(words.shape[1]):
            state = _mixed(state, words[:, i].astype(np.uint32))
        # Each remaining byte is a word of its own, with its sign.
        for i in range(whole, length):
            state = _mixed(state, rows[:, i].astype(np.int8).astype(np.int32).view(np.uint32))
        result[places] = _finished(state, length)
    return result


def _mixed(state: U32, word: U32) -> U32:
    word = _rotated(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    return np.asarray(_rotated(state ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64))


def _finished(state: U32, length: int) -> U32:
    state = state ^ np.uint32(length)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return np.asarray(state ^ (state >> np.uint32(16)))


def _rotated(word: U32, bits: int) -> U32:
    return np.asarray((word << np.uint32(bits)) | (word >> np.uint32(32 - bits)))


# Official releases size every filter for 8192 keys with one false positive in 1754.
SIZE_BYTES = 32768


def build(columns: Sequence[pa.Array]) -> bytes:
    """Write the filter of keys, given by column."""
    blocks = hashing.empty(SIZE_BYTES)
    if len(columns[0]):
        hashing.insert(blocks, _bloom_hashes(columns))
    return hashing.encode(blocks)


def is_usable(kinds: Sequence[pa.DataType]) -> bool:
    """Whether the filter has the values of keys of these types."""
    return all(is_hashed(kind) for kind in kinds)


def may_contain(data: bytes, columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Return for each key whether the generation may have it; the types must be usable."""
    if not data or len(data) % hashing.BLOCK_BYTES:
        raise CorruptTableError(f"a bloom filter has {len(data)} bytes")
    return hashing.contains(hashing.decode(data), _bloom_hashes(columns))


def _bloom_hashes(columns: Sequence[pa.Array]) -> hashing.U64:
    if any(is_hashed(column.type) for column in columns):
        return hashing.hashes(for_bloom(columns))
    # Of other types official releases hash the null marks alone.
    row = pa.array([b"\x00" * len(columns)], pa.large_binary())
    return np.repeat(hashing.hashes(row), len(columns[0]))
