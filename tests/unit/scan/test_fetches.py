"""Fetches of single rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.scan.execute import FetchLimits, fetch_cost_bytes, row_runs

offset_sets = st.sets(st.integers(0, 10_000), max_size=200)
limits = st.builds(
    FetchLimits,
    rows=st.integers(1, 50),
    scattered_rows=st.integers(1, 20),
    span_rows=st.integers(1, 5000),
)


@given(offset_sets, limits)
def test_parts_hold_all_rows_in_order(rows: set[int], limit: FetchLimits) -> None:
    offsets = np.array(sorted(rows), dtype=np.uint64)
    parts = list(limit.parts(offsets))
    assert [int(i) for part in parts for i in part] == sorted(rows)


@given(offset_sets, limits)
def test_a_part_keeps_the_limits(rows: set[int], limit: FetchLimits) -> None:
    for part in limit.parts(np.array(sorted(rows), dtype=np.uint64)):
        span = int(part[-1]) - int(part[0]) + 1
        assert len(part) <= limit.rows
        assert span <= limit.span_rows or len(part) <= limit.scattered_rows


def stored(version: FileVersion) -> Fragment:
    """Return a fragment of one file."""
    major, minor = version.numbers
    file = DataFile(
        path="f.lance",
        fields=(FieldId(0),),
        column_indices=(0,),
        file_major_version=major,
        file_minor_version=minor,
    )
    return Fragment(id=FragmentId(0), files=(file,), physical_rows=10)


def test_many_columns_make_a_row_more_expensive_to_fetch() -> None:
    few, some, many = (
        fetch_cost_bytes([200.0] * n, stored(FileVersion.V2_1)) for n in (1, 3, 1500)
    )
    assert few == some < many


def test_narrow_rows_are_cheap_to_fetch_from_files_with_chunks() -> None:
    old, new = (
        fetch_cost_bytes([8.0, 8.0], stored(v)) for v in (FileVersion.V2_0, FileVersion.V2_1)
    )
    assert new < old


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
