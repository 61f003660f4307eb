"""Protobuf codec of row id segments and sequences."""

from __future__ import annotations

import numpy as np

from lancelake.errors import CorruptTableError
from lancelake.format.rowids import segment
from lancelake.format.rowids.segment import (
    Array,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    U64Array,
)
from lancelake.format.unknown import parse
from lancelake.proto import rowids_pb2

_U16_SPAN = (1 << 16) - 1
_U32_SPAN = (1 << 32) - 1
_MAX_U64 = (1 << 64) - 1


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
    return tuple((segment.length(decode_segment(r.span)), r.version) for r in message.runs)


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
            message.sorted_array.CopyFrom(_encode_array(segment.values(value)))
        case Array():
            message.array.CopyFrom(_encode_array(segment.values(value)))
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
