"""XXH64 with seed 0, of many byte strings at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

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
        found: npt.NDArray[Any] = np.ndarray(
            (count,), dtype, buffer=self._rows, offset=at, strides=(length,)
        )
        return found.astype(np.uint64)


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
