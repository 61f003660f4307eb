"""Stable row ids: sequences of a fragment, their encoding, and where a row is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import parse
from lancelake.proto import rowids_pb2

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


def segment_values(segment: Segment) -> U64Array:
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


_U16_SPAN = (1 << 16) - 1
_U32_SPAN = (1 << 32) - 1


def decode_row_ids(data: bytes) -> tuple[Segment, ...]:
    """Read a row id sequence."""
    message = rowids_pb2.RowIdSequence()
    parse(message, data, what="row id sequence")
    return tuple(decode_segment(s) for s in message.segments)


def encode_row_ids(segments: tuple[Segment, ...]) -> bytes:
    """Write a row id sequence."""
    message = rowids_pb2.RowIdSequence(segments=[encode_segment(s) for s in segments])
    return message.SerializeToString()


def decode_versions(data: bytes) -> tuple[tuple[int, int], ...]:
    """Read a version sequence as pairs of row count and version."""
    message = rowids_pb2.RowDatasetVersionSequence()
    parse(message, data, what="row version sequence")
    return tuple((length(decode_segment(r.span)), r.version) for r in message.runs)


def encode_versions(runs: tuple[tuple[int, int], ...]) -> bytes:
    """Write pairs of row count and version as a version sequence."""
    message = rowids_pb2.RowDatasetVersionSequence()
    start = 0
    for count, version in runs:
        run = message.runs.add(version=version)
        run.span.CopyFrom(encode_segment(Range(start=start, end=start + count)))
        start += count
    return message.SerializeToString()


def decode_segment(message: rowids_pb2.U64Segment) -> Segment:
    """Read one segment."""
    match message.WhichOneof("segment"):
        case "range":
            _ensure_range(message.range.start, message.range.end)
            return Range(start=message.range.start, end=message.range.end)
        case "range_with_holes":
            return _decode_holes(message.range_with_holes)
        case "range_with_bitmap":
            return _decode_bitmap(message.range_with_bitmap)
        case "sorted_array":
            return _decode_sorted(message.sorted_array)
        case "array":
            return Array(_decode_array(message.array).tobytes())
        case _:
            raise CorruptTableError("a row id segment has an unknown encoding")


def encode_segment(value: Segment) -> rowids_pb2.U64Segment:
    """Write one segment."""
    message = rowids_pb2.U64Segment()
    match value:
        case Range():
            message.range.start, message.range.end = value.start, value.end
            message.range.SetInParent()
        case RangeWithHoles():
            target = message.range_with_holes
            target.start, target.end = value.start, value.end
            target.holes.CopyFrom(_encode_array(np.array(value.holes, dtype=np.uint64)))
        case RangeWithBitmap():
            target_bits = message.range_with_bitmap
            target_bits.start, target_bits.end = value.start, value.end
            target_bits.bitmap = value.bitmap
        case SortedArray():
            message.sorted_array.CopyFrom(_encode_array(segment_values(value)))
        case Array():
            message.array.CopyFrom(_encode_array(segment_values(value)))
    return message


def _decode_holes(message: rowids_pb2.U64Segment.RangeWithHoles) -> RangeWithHoles:
    _ensure_range(message.start, message.end)
    holes = _decode_array(message.holes)
    inside = (holes >= message.start) & (holes < message.end)
    if not (bool(np.all(inside)) and bool(np.all(holes[1:] > holes[:-1]))):
        raise CorruptTableError("holes of a row id range are outside of it or out of order")
    numbers = tuple(int(h) for h in holes)
    return RangeWithHoles(start=message.start, end=message.end, holes=numbers)


def _decode_bitmap(message: rowids_pb2.U64Segment.RangeWithBitmap) -> RangeWithBitmap:
    _ensure_range(message.start, message.end)
    slots = message.end - message.start
    if len(message.bitmap) != (slots + 7) // 8:
        msg = f"a row id bitmap has {len(message.bitmap)} bytes for {slots} slots"
        raise CorruptTableError(msg)
    spare = -slots % 8
    if spare and message.bitmap[-1] >> (8 - spare):
        raise CorruptTableError("a row id bitmap has bits set after its range")
    return RangeWithBitmap(start=message.start, end=message.end, bitmap=message.bitmap)


def _decode_sorted(message: rowids_pb2.EncodedU64Array) -> SortedArray:
    values = _decode_array(message)
    if not bool(np.all(values[1:] >= values[:-1])):
        raise CorruptTableError("a sorted array of row ids is out of order")
    return SortedArray(values.tobytes())


def _ensure_range(start: int, end: int) -> None:
    if end < start:
        msg = f"a row id range is from {start} to {end}"
        raise CorruptTableError(msg)


def _decode_array(message: rowids_pb2.EncodedU64Array) -> U64Array:
    match message.WhichOneof("array"):
        case "u16_array":
            narrow = message.u16_array
            return _raised(_widen(narrow.offsets, "<u2"), narrow.base)
        case "u32_array":
            middle = message.u32_array
            return _raised(_widen(middle.offsets, "<u4"), middle.base)
        case "u64_array":
            return _widen(message.u64_array.values, "<u8")
        case _:
            return np.array([], dtype=np.uint64)


def _widen(data: bytes, dtype: str) -> U64Array:
    if len(data) % np.dtype(dtype).itemsize:
        raise CorruptTableError("a row id array ends within a value")
    return np.frombuffer(data, dtype=dtype).astype(np.uint64)


def _raised(offsets: U64Array, base: int) -> U64Array:
    if len(offsets) and int(offsets.max()) + base > _MAX_U64:
        raise CorruptTableError("a row id array has values above 64 bits")
    return offsets + np.uint64(base)


def _encode_array(values: U64Array) -> rowids_pb2.EncodedU64Array:
    message = rowids_pb2.EncodedU64Array()
    if len(values) == 0:
        message.u16_array.SetInParent()
        return message
    low = int(values.min())
    span = int(values.max()) - low
    if span <= _U16_SPAN:
        message.u16_array.base = low
        message.u16_array.offsets = (values - np.uint64(low)).astype("<u2").tobytes()
    elif span <= _U32_SPAN:
        message.u32_array.base = low
        message.u32_array.offsets = (values - np.uint64(low)).astype("<u4").tobytes()
    else:
        message.u64_array.values = values.astype("<u8").tobytes()
    return message


UNKNOWN_VERSION = 1


@dataclass(frozen=True, slots=True)
class VersionSequence:
    """Runs of row count and version, in row order."""

    runs: tuple[tuple[int, int], ...]

    @staticmethod
    def decode(data: bytes, *, physical_rows: int) -> VersionSequence:
        """Decode a sequence; rows after its end have the version of the last run."""
        runs = decode_versions(data)
        covered = sum(count for count, _ in runs)
        if covered > physical_rows:
            msg = f"row versions for {covered} rows in a fragment of {physical_rows}"
            raise CorruptTableError(msg, found=covered, expected=physical_rows)
        if covered < physical_rows:
            last = runs[-1][1] if runs else UNKNOWN_VERSION
            runs = (*runs, (physical_rows - covered, last))
        return VersionSequence(runs)

    @staticmethod
    def constant(version: int, *, rows: int) -> VersionSequence:
        """The same version for all rows."""
        return VersionSequence(((rows, version),))

    def encode(self) -> bytes:
        """Write the sequence."""
        return encode_versions(self.runs)

    def __len__(self) -> int:
        return sum(count for count, _ in self.runs)

    def values(self) -> U64Array:
        """The version of each row."""
        counts = [count for count, _ in self.runs]
        versions = np.array([version for _, version in self.runs], dtype=np.uint64)
        return np.repeat(versions, counts)


@dataclass(frozen=True, slots=True)
class RowIdSequence:
    """Ids in row order."""

    segments: tuple[Segment, ...]

    @staticmethod
    def decode(data: bytes, *, physical_rows: int) -> RowIdSequence:
        """Read a sequence, which must have an id for each physical row."""
        segments = decode_row_ids(data)
        count = sum(length(s) for s in segments)
        if count != physical_rows:
            msg = f"{count} row ids for {physical_rows} rows"
            raise CorruptTableError(msg, found=count, expected=physical_rows)
        return RowIdSequence(segments)

    @staticmethod
    def of(values: U64Array) -> RowIdSequence:
        """Build the sequence of these ids in one segment."""
        return RowIdSequence((build(values),))

    def encode(self) -> bytes:
        """Write the sequence."""
        return encode_row_ids(self.segments)

    def __len__(self) -> int:
        return sum(length(s) for s in self.segments)

    def values(self) -> U64Array:
        """All ids in row order."""
        parts = [segment_values(s) for s in self.segments]
        return np.concatenate(parts) if parts else np.array([], dtype=np.uint64)


Positions = npt.NDArray[np.int64]


def find(sequence: RowIdSequence, ids: U64Array) -> tuple[Positions, U64Array]:
    """Return positions in `ids`, sorted and unique, and the row of each id found."""
    positions: list[Positions] = []
    rows: list[U64Array] = []
    before = 0
    for part in sequence.segments:
        here, offsets = _find(part, ids)
        positions.append(here)
        rows.append(offsets.astype(np.uint64) + np.uint64(before))
        before += length(part)
    if not positions:
        return np.array([], np.int64), np.array([], np.uint64)
    return np.concatenate(positions), np.concatenate(rows)


def _find(part: Segment, ids: U64Array) -> tuple[Positions, Positions]:
    """Return positions in `ids` and the offset of each of these ids in the segment."""
    match part:
        case Range():
            low, high = np.searchsorted(ids, np.array([part.start, part.end], np.uint64))
            here = np.arange(low, high, dtype=np.int64)
            return here, (ids[low:high] - np.uint64(part.start)).astype(np.int64)
        case RangeWithHoles() | RangeWithBitmap():
            low, high = np.searchsorted(ids, np.array([part.start, part.end], np.uint64))
            if low == high:
                return np.array([], np.int64), np.array([], np.int64)
            here, offsets = _in_sorted(segment_values(part), ids[low:high])
            return here + low, offsets
        case SortedArray():
            return _in_sorted(segment_values(part), ids)
        case Array():
            values = segment_values(part)
            order = np.argsort(values, kind="stable")
            here, offsets = _in_sorted(values[order], ids)
            return here, order[offsets].astype(np.int64)
        case _:
            assert_never(part)


def _in_sorted(values: U64Array, ids: U64Array) -> tuple[Positions, Positions]:
    if not len(values):
        return np.array([], np.int64), np.array([], np.int64)
    at = np.minimum(np.searchsorted(values, ids), len(values) - 1)
    here = np.flatnonzero(values[at] == ids)
    return here, at[here]
