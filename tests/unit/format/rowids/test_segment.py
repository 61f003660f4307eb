"""Segments choose the smallest encoding, and each encoding holds its values."""

from __future__ import annotations

import numpy as np
import pytest

from lancelake.format import rowids
from lancelake.format.rowids import (
    Array,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
)

MAX = (1 << 64) - 1


def u64(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def data(*values: int) -> bytes:
    return u64(*values).astype("<u8").tobytes()


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (Range(start=3, end=6), [3, 4, 5]),
        (Range(start=3, end=3), []),
        (Range(start=MAX - 1, end=MAX), [MAX - 1]),
        (RangeWithHoles(start=3, end=8, holes=(4, 7)), [3, 5, 6]),
        (RangeWithBitmap(start=10, end=19, bitmap=b"\x05\x01"), [10, 12, 18]),
        (SortedArray(data(1, 5, MAX)), [1, 5, MAX]),
        (Array(data(5, 1, 5)), [5, 1, 5]),
        (Array(b""), []),
    ],
    ids=str,
)
def test_a_segment_holds_its_values(made, values):
    assert rowids.segment_values(made).tolist() == values


@pytest.mark.parametrize(
    ("made", "length"),
    [
        (Range(start=0, end=MAX), MAX),
        (RangeWithHoles(start=0, end=MAX, holes=(5,)), MAX - 1),
        (RangeWithBitmap(start=10, end=19, bitmap=b"\x05\x01"), 3),
        (SortedArray(data(1, 5)), 2),
        (Array(data(5, 1, 5)), 3),
    ],
    ids=str,
)
def test_values_are_counted_without_building_them(made, length):
    assert rowids.length(made) == length


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Range(start=0, end=0)),
        ([7], Range(start=7, end=8)),
        ([3, 4, 5], Range(start=3, end=6)),
        ([5, 4], Array(data(5, 4))),
        ([4, 4], Array(data(4, 4))),
        ([0, 10**9], SortedArray(data(0, 10**9))),
        ([MAX], SortedArray(data(MAX))),
        ([MAX - 1, MAX], SortedArray(data(MAX - 1, MAX))),
    ],
    ids=str,
)
def test_a_few_values_have_their_encoding(values, expected):
    assert rowids.build(u64(*values)) == expected


def test_one_hole_among_many_values_is_listed():
    values = [*range(50), *range(51, 100)]

    assert rowids.build(u64(*values)) == RangeWithHoles(start=0, end=100, holes=(50,))


def test_many_holes_among_many_values_make_a_bitmap():
    chosen = rowids.build(u64(*range(0, 100, 2)))

    assert chosen == RangeWithBitmap(start=0, end=99, bitmap=b"\x55" * 12 + b"\x05")


def chosen_kind(slots: int, count: int) -> type[Segment]:
    """Return the kind that the rule of the format picks for sorted values with gaps."""
    sizes: list[tuple[int, type[Segment]]] = [
        (24 + 4 * (slots - count), RangeWithHoles),
        (24 + (slots + 7) // 8, RangeWithBitmap),
        (24 + 2 * count, SortedArray),
    ]
    return min(sizes, key=lambda size: size[0])[1]


@pytest.mark.parametrize(
    ("slots", "count"),
    [
        (32, 31),
        (33, 32),
        (24, 23),
        (17, 2),
        (32, 2),
        (33, 2),
        (40, 3),
        (48, 3),
        (49, 3),
        (64, 62),
        (10, 2),
        (3, 2),
        (9, 8),
    ],
)
def test_ties_go_to_holes_and_then_to_the_bitmap(slots, count):
    values = [*range(count - 1), slots - 1]

    assert type(rowids.build(u64(*values))) is chosen_kind(slots, count)
