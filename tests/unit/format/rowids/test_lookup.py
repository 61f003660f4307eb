"""Lookup of rows by id in every encoding."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format import rowids
from lancelake.format.rowids import Array, RowIdSequence, Segment, SortedArray, find

IDS = st.lists(st.integers(0, 60), unique=True, max_size=30)


def encoded(values: list[int]) -> list[Segment]:
    """Return every encoding that can hold the values in this order."""
    array = np.array(values, np.uint64)
    found: list[Segment] = [Array(array.tobytes()), rowids.build(array)]
    return [*found, SortedArray(array.tobytes())] if values == sorted(values) else found


@given(values=st.one_of(IDS, IDS.map(sorted)), asked=st.lists(st.integers(0, 70), unique=True))
def test_each_id_is_found_at_its_row(values: list[int], asked: list[int]) -> None:
    ids = np.array(sorted(asked), np.uint64)
    for part in encoded(values):
        positions, rows = find(RowIdSequence((part,)), ids)
        found = {int(ids[p]): int(r) for p, r in zip(positions, rows, strict=True)}
        assert found == {v: row for row, v in enumerate(values) if v in asked}


def test_rows_are_counted_on_through_segments() -> None:
    parts = (rowids.build(np.array([5, 6], np.uint64)), rowids.build(np.array([1], np.uint64)))
    positions, rows = find(RowIdSequence(parts), np.array([1, 6], np.uint64))
    assert dict(zip(positions.tolist(), rows.tolist(), strict=True)) == {0: 2, 1: 1}


def test_nothing_is_found_in_no_segments() -> None:
    positions, rows = find(RowIdSequence(()), np.array([1], np.uint64))
    assert len(positions) == len(rows) == 0
