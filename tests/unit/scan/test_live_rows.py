"""Live rows, their positions and their offsets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.scan.task_rows import LiveRows

ROWS = 40
SETS = st.sets(st.integers(0, ROWS - 1))
RANGES = st.tuples(st.integers(0, ROWS), st.integers(0, ROWS)).map(sorted).map(tuple)


def live_offsets(deleted: set[int]) -> list[int]:
    return [offset for offset in range(ROWS) if offset not in deleted]


@given(SETS, RANGES)
def test_mask_is_true_for_live_rows(deleted: set[int], span: tuple[int, int]) -> None:
    start, stop = span
    mask = LiveRows(BitMap(deleted)).mask(start, stop)
    expected = [offset not in deleted for offset in range(start, stop)]
    assert all(expected) if mask is None else mask.tolist() == expected


@given(SETS, RANGES)
def test_count_is_that_of_the_mask(deleted: set[int], span: tuple[int, int]) -> None:
    start, stop = span
    live = [offset for offset in live_offsets(deleted) if start <= offset < stop]
    assert LiveRows(BitMap(deleted)).count(start, stop) == len(live)


@given(SETS, st.integers(0, 1000))
def test_live_rows_are_numbered_one_by_one(deleted: set[int], before: int) -> None:
    offsets = np.array(live_offsets(deleted), dtype=np.uint64)
    ranks = LiveRows(BitMap(deleted), before).ranks(offsets)
    assert ranks.tolist() == list(range(before, before + len(offsets)))


@given(SETS)
def test_number_leads_back_to_its_row(deleted: set[int]) -> None:
    live = live_offsets(deleted)
    ranks = np.arange(len(live), dtype=np.uint64)
    assert LiveRows(BitMap(deleted)).offsets_of(ranks).tolist() == live


@given(SETS, st.integers(0, ROWS + 10), st.integers(0, ROWS))
def test_a_range_ends_with_its_last_wanted_row(deleted: set[int], count: int, start: int) -> None:
    live = [offset for offset in live_offsets(deleted) if offset >= start]
    end = LiveRows(BitMap(deleted)).stop_after(count, start, ROWS)
    assert [offset for offset in live if offset < end][:count] == live[:count]
    assert end <= (live[count - 1] + 1 if 0 < count <= len(live) else ROWS)
