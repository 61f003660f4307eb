"""Deletion files behave like sets in both encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.format import deletion
from lancelake.format.fragment import DeletionFileType
from lancelake.format.row_address import ensure_well_formed

ENCODINGS = list(DeletionFileType)
offsets = st.integers(0, (1 << 32) - 1)
spans = st.builds(
    lambda start, size, step: range(start, start + size, step),
    st.integers(0, 1 << 20),
    st.integers(1, 9000),
    st.integers(1, 3),
)
row_sets = st.one_of(
    st.sets(offsets, max_size=40),
    st.lists(spans, max_size=3).map(lambda parts: {i for part in parts for i in part}),
)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(rows=row_sets)
def test_a_set_is_read_as_it_was_written(encoding, rows):
    assert set(deletion.decode(deletion.encode(BitMap(rows), encoding), encoding)) == rows


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(first=row_sets, second=row_sets)
def test_the_union_of_two_files_is_the_file_of_the_union(encoding, first, second):
    parts = [
        deletion.decode(deletion.encode(BitMap(s), encoding), encoding) for s in (first, second)
    ]

    assert set(parts[0] | parts[1]) == first | second


@given(row_sets, st.booleans())
def test_every_bitmap_of_the_library_is_well_formed(rows, optimize):
    bitmap = BitMap(rows)
    if optimize:
        bitmap.run_optimize()

    ensure_well_formed(bytes(bitmap.serialize()))


@given(row_sets)
def test_run_containers_are_read(rows):
    bitmap = BitMap(rows)
    bitmap.run_optimize()

    assert set(deletion.decode(bytes(bitmap.serialize()), DeletionFileType.BITMAP)) == rows
