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
    rest = length % _STRIPE
    whole = length - rest
    state = _stripes(rows[:, :whole]) if whole else np.full(count, _P5)
    return _avalanche(_tail(state + np.uint64(length), rows[:, whole:]))


def hash_slices(data: U8, offsets: I64) -> U64:
    """Hash the bytes between consecutive offsets, grouped by length."""
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        rows = data[offsets[places][:, None] + np.arange(length)]
        hashes[places] = hash_rows(rows)
    return hashes


def _stripes(rows: U8) -> U64:
    words = _words(rows, "<u8")
    seeds = (int(_P1) + int(_P2), int(_P2), 0, -int(_P1))
    lanes = [np.full(len(rows), s % (1 << 64), dtype=np.uint64) for s in seeds]
    for column in range(0, words.shape[1], _LANES):
        for lane in range(_LANES):
            lanes[lane] = _round(lanes[lane], words[:, column + lane])
    turned = zip(lanes, (1, 7, 12, 18), strict=True)
    state = np.zeros(len(rows), dtype=np.uint64)
    for lane_state, bits in turned:
        state = state + _rotated(lane_state, bits)
    for lane_state in lanes:
        state = (state ^ _round(np.zeros_like(lane_state), lane_state)) * _P1 + _P4
    return state


def _tail(state: U64, rows: U8) -> U64:
    length = rows.shape[1]
    whole = length - length % 8
    if whole:
        words = _words(rows[:, :whole], "<u8")
        for column in range(words.shape[1]):
            mixed = _round(np.zeros_like(state), words[:, column])
            state = _rotated(state ^ mixed, 27) * _P1 + _P4
    if length - whole >= _LANES:
        half = _words(rows[:, whole : whole + 4], "<u4")[:, 0]
        state = _rotated(state ^ (half * _P1), 23) * _P2 + _P3
        whole += 4
    for column in range(whole, length):
        byte = rows[:, column].astype(np.uint64)
        state = _rotated(state ^ (byte * _P5), 11) * _P1
    return state


def _avalanche(state: U64) -> U64:
    state = (state ^ (state >> np.uint64(33))) * _P2
    state = (state ^ (state >> np.uint64(29))) * _P3
    return state ^ (state >> np.uint64(32))


def _round(state: U64, words: U64) -> U64:
    return _rotated(state + words * _P2, 31) * _P1


def _rotated(values: U64, bits: int) -> U64:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _words(rows: U8, dtype: str) -> U64:
    return np.ascontiguousarray(rows).view(dtype).astype(np.uint64)
