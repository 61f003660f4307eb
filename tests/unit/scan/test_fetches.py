"""Fetches of single rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.scan.fetches import FetchLimits, fetch_cost_bytes

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


def test_many_columns_make_a_row_dearer_to_fetch() -> None:
    few, some, many = (
        fetch_cost_bytes([200.0] * n, stored(FileVersion.V2_1)) for n in (1, 3, 1500)
    )
    assert few == some < many


def test_narrow_rows_are_cheap_to_fetch_from_files_with_chunks() -> None:
    old, new = (
        fetch_cost_bytes([8.0, 8.0], stored(v)) for v in (FileVersion.V2_0, FileVersion.V2_1)
    )
    assert new < old
