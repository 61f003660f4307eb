"""Hashes that official releases agree on, and the Bloom filter that is built of them.

A value sets one bit in every word of one block, chosen by its XXH64 hash.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_STRIPE = 32
_LANES = 4


def hash_rows(rows: U8) -> U64:
    """Hash each row of a matrix of bytes."""
    count, length = rows.shape
    return _hashed(_Rows(np.ascontiguousarray(rows)), count, length)


def hash_slices(data: U8, offsets: I64) -> U64:
    """Hash the bytes between consecutive offsets, grouped by length."""
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    source = _Bytes(data)
    order = np.argsort(lengths, kind="stable")
    different, firsts = np.unique(lengths[order], return_index=True)
    for length, places in zip(different.tolist(), np.split(order, firsts[1:]), strict=True):
        slices = _Slices(source, offsets[places])
        hashes[places] = _hashed(slices, len(places), length)
    return hashes


class _Strings(Protocol):
    """Byte strings of one length, read as numbers at an offset of each; arrays are new."""

    def eight(self, at: int) -> U64: ...

    def four(self, at: int) -> U64: ...

    def one(self, at: int) -> U64: ...


class _Rows:
    """The rows of a matrix."""

    def __init__(self, rows: U8) -> None:
        self._rows = rows

    def eight(self, at: int) -> U64:
        return self._numbers(at, "<u8")

    def four(self, at: int) -> U64:
        return self._numbers(at, "<u4")

    def one(self, at: int) -> U64:
        return self._numbers(at, "u1")

    def _numbers(self, at: int, dtype: str) -> U64:
        count, length = self._rows.shape
        lanes: npt.NDArray[Any] = np.ndarray(
            (count,), dtype, buffer=self._rows, offset=at, strides=(length,)
        )
        return lanes.astype(np.uint64)


class _Bytes:
    """Bytes that are read as numbers at any offset."""

    def __init__(self, data: U8) -> None:
        padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
        size = len(data) + 1
        self.eights = np.ndarray((size,), "<u8", buffer=padded, strides=(1,))
        self.fours = np.ndarray((size,), "<u4", buffer=padded, strides=(1,))
        self.ones = padded


class _Slices:
    """Byte strings that start at some offsets."""

    def __init__(self, data: _Bytes, starts: I64) -> None:
        self._data = data
        self._starts = starts

    def eight(self, at: int) -> U64:
        return self._data.eights[self._starts + at].astype(np.uint64, copy=False)

    def four(self, at: int) -> U64:
        return self._data.fours[self._starts + at].astype(np.uint64)

    def one(self, at: int) -> U64:
        return self._data.ones[self._starts + at].astype(np.uint64)


# The functions below change the array that they are given and return it: new arrays would cost
# more than the arithmetic.


def _hashed(strings: _Strings, count: int, length: int) -> U64:
    """Hash `count` byte strings of one length."""
    whole = length - length % _STRIPE
    state = _stripes(strings, count, whole) if whole else np.full(count, _P5)
    state += np.uint64(length)
    return _avalanche(_tail(state, strings, whole, length))


def _stripes(strings: _Strings, count: int, length: int) -> U64:
    seeds = (int(_P1) + int(_P2), int(_P2), 0, -int(_P1))
    lanes = [np.full(count, s % (1 << 64), dtype=np.uint64) for s in seeds]
    for at in range(0, length, 8):
        lane = lanes[at // 8 % _LANES]
        words = strings.eight(at)
        words *= _P2
        lane += words
        _rotate(lane, 31)
        lane *= _P1
    state = np.zeros(count, dtype=np.uint64)
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        state += _rotate(lane.copy(), bits)
    for lane in lanes:
        state ^= _mixed(lane)
        state *= _P1
        state += _P4
    return state


def _tail(state: U64, strings: _Strings, start: int, length: int) -> U64:
    at = start
    while length - at >= 8:  # noqa: PLR2004  # bytes of a word
        state ^= _mixed(strings.eight(at))
        _rotate(state, 27)
        state *= _P1
        state += _P4
        at += 8
    if length - at >= _LANES:
        words = strings.four(at)
        words *= _P1
        state ^= words
        _rotate(state, 23)
        state *= _P2
        state += _P3
        at += 4
    for place in range(at, length):
        letters = strings.one(place)
        letters *= _P5
        state ^= letters
        _rotate(state, 11)
        state *= _P1
    return state


def _avalanche(state: U64) -> U64:
    for bits, factor in ((33, _P2), (29, _P3)):
        state ^= state >> np.uint64(bits)
        state *= factor
    state ^= state >> np.uint64(32)
    return state


def _mixed(words: U64) -> U64:
    words *= _P2
    _rotate(words, 31)
    words *= _P1
    return words


def _rotate(values: U64, bits: int) -> U64:
    high = values >> np.uint64(64 - bits)
    values <<= np.uint64(bits)
    values |= high
    return values


_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_SIP_WORD_BYTES = 8


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
    whole = length // _SIP_WORD_BYTES
    padded = np.zeros((count, (whole + 1) * _SIP_WORD_BYTES), dtype=np.uint8)
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


WORDS = 8
_WORD_BYTES = 4
_WORD_BITS = 8 * _WORD_BYTES
BLOCK_BYTES = WORDS * _WORD_BYTES
_MIN_LOG2_BYTES = 5
_MAX_LOG2_BYTES = 27
# Terms of the false-positive rate; further ones do not change a 64-bit number.
_SUMMANDS = 750
_SALTS = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    dtype=np.uint32,
)

Blocks: TypeAlias = npt.NDArray[np.uint32]


@functools.lru_cache(maxsize=64)
def size_bytes(items: int, probability: float) -> int:
    """Return the size of a filter: the least power of two for a false-positive rate."""
    low, high = 0, 64
    while high > low + 1:
        middle = (low + high) // 2
        if _false_positives(items, 2.0**middle) <= probability:
            high = middle
        else:
            low = middle
    return 1 << min(max(high, _MIN_LOG2_BYTES), _MAX_LOG2_BYTES)


def empty(size: int) -> Blocks:
    """Return an empty filter of a size in bytes."""
    return np.zeros((size // BLOCK_BYTES, WORDS), dtype=np.uint32)


def insert(blocks: Blocks, hashes: U64) -> None:
    """Add values by their hashes."""
    starts = (block_numbers(hashes, len(blocks)) * _WORD_BITS).astype(np.uint32)
    low = hashes.astype(np.uint32)
    bits = np.empty_like(low)
    # One word of all blocks at a time: its bits fit the fastest cache of a processor.
    is_set = np.empty(len(blocks) * _WORD_BITS, dtype=np.bool_)
    for word, salt in enumerate(_SALTS):
        is_set.fill(False)
        np.multiply(low, salt, out=bits)
        np.right_shift(bits, np.uint32(27), out=bits)
        np.add(bits, starts, out=bits)
        is_set[bits.astype(np.intp)] = True
        blocks[:, word] |= np.packbits(is_set, bitorder="little").view("<u4")


def block_numbers(hashes: U64, blocks: int) -> npt.NDArray[np.int64]:
    """Return the block of each value in a filter with this many blocks."""
    return (((hashes >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)).astype(np.int64)


def masks(hashes: U64) -> Blocks:
    """Return the bits that each value sets in the words of its block."""
    return np.left_shift(np.uint32(1), _bits(hashes))


def contains(blocks: Blocks, hashes: U64) -> npt.NDArray[np.bool_]:
    """Return for each value whether a filter may have it."""
    wanted = masks(hashes)
    bits = blocks[block_numbers(hashes, len(blocks))] & wanted
    return np.asarray((bits == wanted).all(axis=1))


def encode(blocks: Blocks) -> bytes:
    """Write a filter."""
    return blocks.astype("<u4", copy=False).tobytes()


def decode(data: bytes) -> Blocks:
    """Read a filter, whose size is a multiple of that of a block."""
    return np.frombuffer(data, dtype="<u4").reshape(-1, WORDS)


def _bits(hashes: U64) -> Blocks:
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return (low[:, None] * _SALTS[None, :]) >> np.uint32(27)


def _false_positives(items: int, size: float) -> float:
    """Return the false-positive rate of a filter (Putze, Sanders and Singler, equation 3)."""
    bits = size * 8
    if not items:
        return 0.0
    if items / bits > 2:  # noqa: PLR2004  # more values than the sum below can add up
        return 1.0
    load = BLOCK_BYTES * 8 * items / bits
    rate = 0.0
    for count in range(_SUMMANDS - 1, 0, -1):
        poisson = count * math.log(load) - load - math.lgamma(count + 1)
        hit = 1.0 - (1.0 - 1.0 / _WORD_BITS) ** count
        rate += math.exp(poisson + WORDS * math.log(hit))
    return min(rate, 1.0)
