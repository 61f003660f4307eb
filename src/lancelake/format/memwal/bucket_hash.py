"""Bucket of a value: Spark's Murmur3 hash with seed 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import UnsupportedError
from lancelake.format.memwal import key_bytes
from lancelake.format.memwal.sip_hash import by_length

U32 = npt.NDArray[np.uint32]
_WORD_BYTES = 4


def buckets(values: pa.Array, count: int) -> npt.NDArray[np.int32]:
    """Return the bucket of each value; null is in bucket 0."""
    positive = (hashes(values) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return (positive % count).astype(np.int32)


def hashes(values: pa.Array) -> U32:
    """Return the hash of each value; 0 for null."""
    found = np.zeros(len(values), dtype=np.uint32)
    valid = np.asarray(pc.is_valid(values))
    if valid.any():
        found[valid] = _hashes(pc.drop_null(values))
    return found


def _hashes(values: pa.Array) -> U32:
    kind = values.type
    if key_bytes.is_text(kind):
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
        raise UnsupportedError(msg, type=str(kind))
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
