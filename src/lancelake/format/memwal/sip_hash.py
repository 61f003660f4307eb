"""SipHash-1-3 with a zero key, of many byte strings together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U64 = npt.NDArray[np.uint64]
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_WORD_BYTES = 8


def by_length(
    values: pa.LargeBinaryArray,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
    """Yield for each length the positions of its strings and their bytes, one row for each."""
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    content = values.buffers()[2]
    data = np.frombuffer(content, dtype=np.uint8) if content else np.empty(0, dtype=np.uint8)
    lengths = np.diff(offsets)
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        yield places, data[offsets[places][:, None] + np.arange(length)]


def hashes(values: pa.LargeBinaryArray) -> U64:
    """Return the hash of each string; there are no nulls."""
    result = np.empty(len(values), dtype=np.uint64)
    if len(values):
        for places, rows in by_length(values):
            result[places] = _hash(rows)
    return result


def _hash(rows: npt.NDArray[np.uint8]) -> U64:
    count, length = rows.shape
    whole = length // _WORD_BYTES
    padded = np.zeros((count, (whole + 1) * _WORD_BYTES), dtype=np.uint8)
    padded[:, :length] = rows
    padded[:, -1] = length & 0xFF
    words = padded.view("<u8").astype(np.uint64)
    state = [np.full(count, start, dtype=np.uint64) for start in _START]
    for i in range(whole + 1):
        state[3] ^= words[:, i]
        _round(state)
        state[0] ^= words[:, i]
    state[2] ^= np.uint64(0xFF)
    for _ in range(3):
        _round(state)
    return np.asarray(state[0] ^ state[1] ^ state[2] ^ state[3])


def _round(v: list[U64]) -> None:
    v[0] += v[1]
    v[1] = _rotated(v[1], 13) ^ v[0]
    v[0] = _rotated(v[0], 32)
    v[2] += v[3]
    v[3] = _rotated(v[3], 16) ^ v[2]
    v[0] += v[3]
    v[3] = _rotated(v[3], 21) ^ v[0]
    v[2] += v[1]
    v[1] = _rotated(v[1], 17) ^ v[2]
    v[2] = _rotated(v[2], 32)


def _rotated(word: U64, bits: int) -> U64:
    return np.asarray((word << np.uint64(bits)) | (word >> np.uint64(64 - bits)))
