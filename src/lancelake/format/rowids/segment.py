"""The five encodings of a run of 64-bit values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

U64Array = npt.NDArray[np.uint64]

_MAX_U64 = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Every value from start up to, not including, end."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWithHoles:
    """A range without some values, which are sorted."""

    start: int
    end: int
    holes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeWithBitmap:
    """A range of which the set bits are present, lowest bit of a byte first."""

    start: int
    end: int
    bitmap: bytes


@dataclass(frozen=True, slots=True)
class SortedArray:
    """Ascending values, as little-endian 64-bit integers."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Array:
    """Values in any order, as little-endian 64-bit integers."""

    data: bytes


Segment = Range | RangeWithHoles | RangeWithBitmap | SortedArray | Array


def length(segment: Segment) -> int:
    """Count the values without building them."""
    match segment:
        case Range():
            return segment.end - segment.start
        case RangeWithHoles():
            return segment.end - segment.start - len(segment.holes)
        case RangeWithBitmap():
            return int(np.bitwise_count(np.frombuffer(segment.bitmap, dtype=np.uint8)).sum())
        case SortedArray() | Array():
            return len(segment.data) // 8
        case _:
            assert_never(segment)


def values(segment: Segment) -> U64Array:
    """Build the values in order."""
    match segment:
        case Range():
            return _span(segment.start, segment.end)
        case RangeWithHoles():
            everything = _span(segment.start, segment.end)
            holes = np.array(segment.holes, dtype=np.uint64)
            return everything[~np.isin(everything, holes)]
        case RangeWithBitmap():
            bits = np.unpackbits(np.frombuffer(segment.bitmap, np.uint8), bitorder="little")
            present = np.flatnonzero(bits).astype(np.uint64)
            return present + np.uint64(segment.start)
        case SortedArray() | Array():
            return np.frombuffer(segment.data, dtype="<u8")
        case _:
            assert_never(segment)


def build(array: U64Array) -> Segment:
    """Choose the smallest encoding for these values."""
    if len(array) == 0:
        return Range(start=0, end=0)
    if not bool(np.all(array[1:] > array[:-1])):
        return Array(array.astype("<u8").tobytes())
    start, end = int(array[0]), int(array[-1]) + 1
    slots, count = end - start, len(array)
    if end > _MAX_U64:
        return SortedArray(array.astype("<u8").tobytes())
    if slots == count:
        return Range(start=start, end=end)
    by_holes, by_bitmap, by_array = 24 + 4 * (slots - count), 24 + (slots + 7) // 8, 24 + 2 * count
    if by_holes <= min(by_bitmap, by_array):
        holes = np.setdiff1d(_span(start, end), array, assume_unique=True)
        return RangeWithHoles(start=start, end=end, holes=tuple(int(h) for h in holes))
    if by_bitmap <= by_array:
        bits = np.zeros(slots, dtype=np.uint8)
        bits[(array - np.uint64(start)).astype(np.int64)] = 1
        packed = np.packbits(bits, bitorder="little").tobytes()
        return RangeWithBitmap(start=start, end=end, bitmap=packed)
    return SortedArray(array.astype("<u8").tobytes())


def _span(start: int, end: int) -> U64Array:
    return np.arange(end - start, dtype=np.uint64) + np.uint64(start)
