"""Rows are found by their stable ids, in whatever order these are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import rowids
from lancelake.format.rowids import Range, RowIdSequence, build
from lancelake.scan.index_search.search import RowPlaces

TOP = (1 << 64) - 1


def array(ids: list[int]) -> np.ndarray:
    return np.array(ids, dtype=np.uint64)


@given(
    st.lists(st.integers(0, 60), unique=True),
    st.integers(0, 60),
    st.sets(st.integers(0, 70)).map(sorted),
)
def test_rows_are_those_that_the_sequence_has(ids: list[int], cut: int, wanted: list[int]) -> None:
    parts = tuple(build(array(part)) for part in (ids[:cut], ids[cut:]))
    sequence = RowIdSequence(parts)
    _, expected = rowids.find(sequence, array(wanted))
    assert sorted(RowPlaces.of(sequence).find(array(wanted))) == sorted(expected)


@pytest.mark.parametrize("ids", [[5, 6, 7], [7, 5, 6], [5, 7, 9], []])
def test_ids_at_the_edges_are_found(ids: list[int]) -> None:
    places = RowPlaces.of(RowIdSequence((build(array(ids)),)))
    found = places.find(array([0, 4, 5, 6, 7, 8, 9, 10, TOP]))
    assert [ids[int(row)] for row in found] == [i for i in (5, 6, 7, 9) if i in ids]


def test_greatest_id_is_found() -> None:
    places = RowPlaces.of(RowIdSequence((Range(start=TOP - 1, end=TOP), build(array([TOP])))))
    assert places.find(array([3, TOP - 1, TOP])).tolist() == [0, 1]
