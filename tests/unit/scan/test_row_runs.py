"""Chosen rows are divided into runs to stream and single rows to fetch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.scan.row_runs import row_runs


def runs(offsets: list[int], width: float = 8.0, cost: int = 800) -> list[tuple[int, int, bool]]:
    found = row_runs(np.array(offsets, dtype=np.uint64), width, cost)
    return [(int(r.offsets[0]), int(r.offsets[-1]), r.are_near) for r in found]


def test_near_rows_are_streamed_and_others_fetched() -> None:
    zone = list(range(500_000, 500_200))
    assert runs([3, 900, *zone, 900_000]) == [
        (3, 900, False),
        (500_000, 500_199, True),
        (900_000, 900_000, False),
    ]


def test_scattered_rows_are_fetched_however_many_there_are() -> None:
    assert runs(list(range(0, 300_000, 300))) == [(0, 299_700, False)]


def test_few_near_rows_are_fetched() -> None:
    assert runs([1, 2, 3]) == [(1, 3, False)]


def test_rows_without_columns_are_one_run() -> None:
    assert runs([1, 1 << 20], width=0.0) == [(1, 1 << 20, False)]
    assert runs(list(range(100)), width=0.0) == [(0, 99, True)]


@given(st.sets(st.integers(0, 3000)).map(sorted), st.sampled_from([0.0, 1.0, 40.0, 900.0]))
def test_runs_are_the_rows_in_order(offsets: list[int], width: float) -> None:
    found = row_runs(np.array(offsets, dtype=np.uint64), width, 800)
    assert [int(row) for run in found for row in run.offsets] == offsets
