"""Rows keep their ids and versions in a compact encoding."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.rowids import Range, RowIdSequence, VersionSequence
from lancelake.maintenance.compact.stored_rows import CarriedRows, row_ids, versions


def array(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


def test_ids_of_neighbours_become_one_range() -> None:
    assert row_ids(array(list(range(7, 100)))).segments == (Range(start=7, end=100),)


def test_ids_out_of_order_become_ranges_where_these_are_few() -> None:
    found = row_ids(array([*range(50, 100), *range(50)]))
    assert found.segments == (Range(start=50, end=100), Range(start=0, end=50))


@given(st.lists(st.integers(0, 1 << 63), min_size=1, max_size=60))
def test_any_ids_are_kept_in_order(values: list[int]) -> None:
    encoded = row_ids(array(values)).encode()
    found = RowIdSequence.decode(encoded, physical_rows=len(values))
    assert found.values().tolist() == values


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60))
def test_any_versions_are_kept_in_order(values: list[int]) -> None:
    encoded = versions(array(values)).encode()
    found = VersionSequence.decode(encoded, physical_rows=len(values))
    assert found.values().tolist() == values


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8),
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_each_fragment_gets_what_belongs_to_its_rows(sizes: list[int], cuts: list[int]) -> None:
    carried = CarriedRows()
    total = sum(sizes)
    ids = pa.array(range(total), pa.uint64())
    start = 0
    for size in sizes:
        columns = [ids.slice(start, size)] * 3
        carried.add(pa.RecordBatch.from_arrays(columns, names=["i", "c", "u"]))
        start += size
    found: list[int] = []
    for cut in cuts:
        count = min(cut, total - len(found))
        if not count:
            break
        fragment = Fragment(id=FragmentId(0), files=(), physical_rows=count)
        given_to = carried.given_to(fragment)
        assert isinstance(given_to.row_ids, bytes)
        sequence = RowIdSequence.decode(given_to.row_ids, physical_rows=count)
        found += sequence.values().tolist()
    assert found == list(range(len(found)))
