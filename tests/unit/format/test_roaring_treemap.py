"""Roaring treemaps survive being written, and damaged ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lancelake.errors import CorruptTableError
from lancelake.format.row_address import bitmap_of, decode_treemap, encode_treemap

WORDS = st.sampled_from([0, 1, 2, 70_000, (1 << 32) - 1])
parts = st.dictionaries(WORDS, st.sets(WORDS).map(BitMap))


@given(parts)
def test_written_treemaps_are_read_back(drawn: dict[int, BitMap]) -> None:
    data = encode_treemap(drawn)
    present = {high: low for high, low in drawn.items() if low}
    assert decode_treemap(data, what="rows") == present


@given(parts)
def test_the_bytes_are_those_of_a_64_bit_bitmap(drawn: dict[int, BitMap]) -> None:
    numbers = BitMap64((high << 32) | low for high, lows in drawn.items() for low in lows)
    assert encode_treemap(drawn) == bytes(numbers.serialize())


@given(parts, st.data())
def test_a_treemap_that_is_cut_off_is_corrupt(
    drawn: dict[int, BitMap], data: st.DataObject
) -> None:
    whole = encode_treemap(drawn)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(CorruptTableError, match="postings"):
        decode_treemap(whole[:length], what="postings")


def test_bytes_after_a_treemap_are_corrupt() -> None:
    data = encode_treemap({1: BitMap([2])})
    with pytest.raises(CorruptTableError, match="too many"):
        decode_treemap(data + b"x", what="rows")


@given(st.lists(WORDS))
def test_a_bitmap_of_an_array_has_its_numbers(numbers: list[int]) -> None:
    assert bitmap_of(np.array(numbers, dtype=np.uint32)) == BitMap(numbers)
