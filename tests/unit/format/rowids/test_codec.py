"""Encoding of segments; invalid ones are refused."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.errors import CorruptTableError
from lancelake.format import rowids
from lancelake.format.rowids import Array, Range, RangeWithBitmap, RangeWithHoles, SortedArray
from lancelake.proto import rowids_pb2
from lancelake.proto.rowids_pb2 import EncodedU64Array, U64Segment

MAX = (1 << 64) - 1
U16 = EncodedU64Array.U16Array
U32 = EncodedU64Array.U32Array
U64 = EncodedU64Array.U64Array


def data(*values: int) -> bytes:
    return np.array(values, dtype="<u8").tobytes()


@pytest.mark.parametrize(
    "value",
    [
        Range(start=0, end=0),
        Range(start=5, end=MAX),
        RangeWithHoles(start=0, end=9, holes=(1, 8)),
        RangeWithHoles(start=0, end=9, holes=()),
        RangeWithBitmap(start=2, end=5, bitmap=b"\x05"),
        RangeWithBitmap(start=2, end=2, bitmap=b""),
        SortedArray(data()),
        SortedArray(data(1, 1, MAX)),
        Array(data(MAX, 0)),
    ],
    ids=str,
)
def test_a_segment_is_read_as_it_was_written(value):
    assert rowids.decode_segment(rowids.encode_segment(value)) == value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], EncodedU64Array(u16_array=U16())),
        ([7], EncodedU64Array(u16_array=U16(base=7, offsets=b"\0\0"))),
        ([65542, 7], EncodedU64Array(u16_array=U16(base=7, offsets=b"\xff\xff\0\0"))),
        ([0, 65536], EncodedU64Array(u32_array=U32(base=0, offsets=b"\0\0\0\0\0\0\1\0"))),
        (
            [1 << 40, (1 << 40) + (1 << 32) - 1],
            EncodedU64Array(u32_array=U32(base=1 << 40, offsets=b"\0\0\0\0\xff\xff\xff\xff")),
        ),
        ([0, 1 << 32], EncodedU64Array(u64_array=U64(values=data(0, 1 << 32)))),
    ],
    ids=str,
)
def test_an_array_has_the_smallest_width_that_holds_it(values, expected):
    assert rowids.encode_segment(Array(data(*values))).array == expected


def test_the_bits_of_a_byte_count_from_the_lowest():
    message = U64Segment(
        range_with_bitmap=U64Segment.RangeWithBitmap(start=100, end=110, bitmap=b"\x01\x02")
    )

    assert rowids.decode_segment(message) == RangeWithBitmap(start=100, end=110, bitmap=b"\x01\x02")


@pytest.mark.parametrize(
    "message",
    [
        U64Segment(),
        U64Segment(range=U64Segment.Range(start=2, end=1)),
        U64Segment(range_with_holes=U64Segment.RangeWithHoles(start=2, end=1)),
        U64Segment(
            range_with_holes=U64Segment.RangeWithHoles(
                start=2, end=5, holes=EncodedU64Array(u16_array=U16(base=5, offsets=b"\0\0"))
            )
        ),
        U64Segment(
            range_with_holes=U64Segment.RangeWithHoles(
                start=2, end=5, holes=EncodedU64Array(u16_array=U16(base=1, offsets=b"\0\0"))
            )
        ),
        U64Segment(
            range_with_holes=U64Segment.RangeWithHoles(
                start=0, end=5, holes=EncodedU64Array(u16_array=U16(offsets=b"\2\0\1\0"))
            )
        ),
        U64Segment(range_with_bitmap=U64Segment.RangeWithBitmap(start=2, end=1)),
        U64Segment(range_with_bitmap=U64Segment.RangeWithBitmap(start=0, end=9, bitmap=b"\1")),
        U64Segment(range_with_bitmap=U64Segment.RangeWithBitmap(start=0, end=MAX, bitmap=b"\1")),
        U64Segment(range_with_bitmap=U64Segment.RangeWithBitmap(start=0, end=3, bitmap=b"\x08")),
        U64Segment(array=EncodedU64Array(u16_array=U16(offsets=b"\1"))),
        U64Segment(array=EncodedU64Array(u32_array=U32(offsets=b"\1\1\1"))),
        U64Segment(array=EncodedU64Array(u64_array=U64(values=b"\1" * 7))),
        U64Segment(array=EncodedU64Array(u16_array=U16(base=MAX, offsets=b"\1\0"))),
        U64Segment(array=EncodedU64Array(u32_array=U32(base=MAX, offsets=b"\1\0\0\0"))),
        U64Segment(sorted_array=EncodedU64Array(u16_array=U16(offsets=b"\2\0\1\0"))),
    ],
    ids=lambda message: str(message).replace("\n", " "),
)
def test_a_segment_that_makes_no_sense_is_damage(message):
    with pytest.raises(CorruptTableError):
        rowids.decode_segment(message)


def test_versions_are_written_as_ranges_that_follow_each_other():
    message = rowids_pb2.RowDatasetVersionSequence.FromString(
        rowids.encode_versions(((3, 1), (2, 7)))
    )

    assert [(r.span.range.start, r.span.range.end, r.version) for r in message.runs] == [
        (0, 3, 1),
        (3, 5, 7),
    ]


def test_only_the_length_of_a_version_span_counts():
    message = rowids_pb2.RowDatasetVersionSequence()
    message.runs.add(version=4).span.CopyFrom(
        rowids.encode_segment(RangeWithBitmap(start=90, end=94, bitmap=b"\x05"))
    )

    assert rowids.decode_versions(message.SerializeToString()) == ((2, 4),)


def test_damaged_bytes_are_reported():
    with pytest.raises(CorruptTableError):
        rowids.decode_row_ids(b"\xff")
