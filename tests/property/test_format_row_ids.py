"""Sequences of row ids and versions behave like lists."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import rowids
from lancelake.format.rowids import (
    Array,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    RowIdSequence,
    Segment,
    SortedArray,
    VersionSequence,
)

MAX = (1 << 64) - 1

u64 = st.integers(0, MAX)
starts = st.sampled_from([0, 1, 1 << 16, 1 << 32, 1 << 50, MAX - 400])
runs = st.lists(st.tuples(st.integers(1, 9), u64), max_size=6).map(tuple)


@st.composite
def near(draw: st.DrawFn) -> list[int]:
    """Draw ids that lie close together, as those of a fragment do."""
    start = draw(starts)
    offsets = draw(st.lists(st.integers(0, 399), max_size=60, unique=True))
    return [start + offset for offset in (sorted(offsets) if draw(st.booleans()) else offsets)]


@st.composite
def nearly_full(draw: st.DrawFn) -> list[int]:
    """Draw ids of which few are missing, so that holes and bitmaps compete."""
    start, size = draw(starts), draw(st.integers(1, 300))
    missing = draw(st.sets(st.integers(0, size - 1), max_size=size // 8))
    return [start + i for i in range(size) if i not in missing]


ids = st.one_of(near(), nearly_full(), st.lists(u64, max_size=20))


def array(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def rule(values: list[int]) -> type[Segment]:
    """Pick the encoding by the rule of the format."""
    if any(b <= a for a, b in itertools.pairwise(values)):
        return Array
    if not values:
        return Range
    slots, count = values[-1] - values[0] + 1, len(values)
    if values[-1] == MAX:
        return SortedArray
    if slots == count:
        return Range
    sizes: list[tuple[int, type[Segment]]] = [
        (24 + 4 * (slots - count), RangeWithHoles),
        (24 + -(-slots // 8), RangeWithBitmap),
        (24 + 2 * count, SortedArray),
    ]
    return min(sizes, key=lambda size: size[0])[1]


@given(ids)
def test_a_sequence_holds_its_ids_in_order(values):
    data = RowIdSequence.of(array(values)).encode()
    found = RowIdSequence.decode(data, physical_rows=len(values))

    assert found.values().tolist() == values


@given(ids)
def test_the_encoding_is_the_one_of_the_rule(values):
    assert type(rowids.build(array(values))) is rule(values)


@given(ids)
def test_the_length_is_known_without_the_values(values):
    assert rowids.length(rowids.build(array(values))) == len(values)


@given(st.lists(ids, max_size=4))
def test_segments_are_concatenated(parts):
    sequence = RowIdSequence(tuple(rowids.build(array(part)) for part in parts))
    found = RowIdSequence.decode(sequence.encode(), physical_rows=len(sequence))

    assert found.values().tolist() == [value for part in parts for value in part]


@given(ids)
def test_a_segment_is_read_as_it_was_written(values):
    made = rowids.build(array(values))

    assert rowids.decode_segment(rowids.encode_segment(made)) == made


@given(starts, st.lists(st.booleans(), min_size=1, max_size=70))
def test_bit_i_of_a_bitmap_is_bit_i_of_a_little_endian_number(start, bits):
    number = sum(1 << i for i, bit in enumerate(bits) if bit)
    bitmap = number.to_bytes((len(bits) + 7) // 8, "little")
    made = RangeWithBitmap(start=start, end=start + len(bits), bitmap=bitmap)

    assert rowids.segment_values(made).tolist() == [start + i for i, bit in enumerate(bits) if bit]


@given(runs)
def test_versions_are_those_of_their_runs(pairs):
    rows = sum(count for count, _ in pairs)
    data = VersionSequence(pairs).encode()
    found = VersionSequence.decode(data, physical_rows=rows)

    assert found.values().tolist() == [version for count, version in pairs for _ in range(count)]


@given(runs.filter(bool), st.integers(1, 9))
def test_rows_past_the_last_run_repeat_its_version(pairs, more):
    rows = sum(count for count, _ in pairs)
    found = VersionSequence.decode(VersionSequence(pairs).encode(), physical_rows=rows + more)

    assert found.values().tolist()[rows:] == [pairs[-1][1]] * more
