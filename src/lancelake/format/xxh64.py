"""XXH64 with seed 0, of many byte strings at once."""

from __future__ import annotations

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
    return _hashed(_Bytes(rows.reshape(-1)), np.arange(count, dtype=np.int64) * length, length)


def hash_slices(data: U8, offsets: I64) -> U64:
    """Hash the bytes between consecutive offsets, grouped by length."""
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    source = _Bytes(data)
    order = np.argsort(lengths, kind="stable")
    different, firsts = np.unique(lengths[order], return_index=True)
    for length, places in zip(different.tolist(), np.split(order, firsts[1:]), strict=True):
        hashes[places] = _hashed(source, offsets[places], length)
    return hashes


class _Bytes:
    """Bytes that are read as numbers at any offset."""

    def __init__(self, data: U8) -> None:
        padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
        size = len(data) + 1
        self._eights = np.ndarray((size,), "<u8", buffer=padded, strides=(1,))
        self._fours = np.ndarray((size,), "<u4", buffer=padded, strides=(1,))
        self._ones = padded

    def eight(self, places: I64) -> U64:
        """Return the eight-byte numbers at these offsets."""
        return self._eights[places].astype(np.uint64, copy=False)

    def four(self, places: I64) -> U64:
        """Return the four-byte numbers at these offsets."""
        return self._fours[places].astype(np.uint64)

    def one(self, places: I64) -> U64:
        """Return the bytes at these offsets."""
        return self._ones[places].astype(np.uint64)


def _hashed(data: _Bytes, starts: I64, length: int) -> U64:
    """Hash byte strings of one length at these offsets."""
    whole = length - length % _STRIPE
    state = _stripes(data, starts, whole) if whole else np.full(len(starts), _P5)
    return _avalanche(_tail(state + np.uint64(length), data, starts + whole, length - whole))


def _stripes(data: _Bytes, starts: I64, length: int) -> U64:
    seeds = (int(_P1) + int(_P2), int(_P2), 0, -int(_P1))
    lanes = [np.full(len(starts), s % (1 << 64), dtype=np.uint64) for s in seeds]
    for at in range(0, length, 8):
        lane = at // 8 % _LANES
        lanes[lane] = _round(lanes[lane], data.eight(starts + at))
    turned = zip(lanes, (1, 7, 12, 18), strict=True)
    state = np.zeros(len(starts), dtype=np.uint64)
    for lane_state, bits in turned:
        state = state + _rotated(lane_state, bits)
    for lane_state in lanes:
        state = (state ^ _round(np.zeros_like(lane_state), lane_state)) * _P1 + _P4
    return state


def _tail(state: U64, data: _Bytes, starts: I64, length: int) -> U64:
    at = 0
    while length - at >= 8:  # noqa: PLR2004  # bytes of a word
        mixed = _round(np.zeros_like(state), data.eight(starts + at))
        state = _rotated(state ^ mixed, 27) * _P1 + _P4
        at += 8
    if length - at >= _LANES:
        state = _rotated(state ^ (data.four(starts + at) * _P1), 23) * _P2 + _P3
        at += 4
    for place in range(at, length):
        state = _rotated(state ^ (data.one(starts + place) * _P5), 11) * _P1
    return state


def _avalanche(state: U64) -> U64:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


def _round(state: U64, words: U64) -> U64:
    return _rotated(state + words * _P2, 31) * _P1


def _rotated(values: U64, bits: int) -> U64:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
