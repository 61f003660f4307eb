"""Sets of row ids behave like sets, and survive being written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.index.row_sets import RowIds, decode_tree_map, encode_tree_map, union

numbers = st.builds(
    lambda high, low: (high << 32) | low,
    st.sampled_from([0, 1, 7, (1 << 32) - 1]),
    st.sampled_from([0, 1, 2, 65_536, (1 << 32) - 1]),
)
sets = st.sets(numbers)


def row_ids(values: set[int]) -> RowIds:
    return RowIds.of(np.array(list(values), dtype=np.uint64))


@given(sets, sets)
def test_operations_are_those_of_sets(left: set[int], right: set[int]) -> None:
    a, b = row_ids(left), row_ids(right)
    assert a.to_array().tolist() == sorted(left)
    assert (a | b).to_array().tolist() == sorted(left | right)
    assert union([a, b]).to_array().tolist() == sorted(left | right)
    assert (a & b).to_array().tolist() == sorted(left & right)
    assert (a - b).to_array().tolist() == sorted(left - right)
    assert len(a) == len(left)
    assert all((value in a) == (value in left) for value in left | right)


@given(sets)
def test_written_sets_are_read_back(values: set[int]) -> None:
    assert decode_tree_map(encode_tree_map(row_ids(values))).to_array().tolist() == sorted(values)


def test_an_entry_without_bytes_means_all_rows_of_a_fragment() -> None:
    data = b"\x01\0\0\0" + b"\x03\0\0\0" + b"\0\0\0\0"
    found = decode_tree_map(data, rows_of={3: 4}.get)
    assert found.parts == {3: BitMap(range(4))}


@pytest.mark.parametrize(
    "data", [b"", b"\x01\0\0\0", b"\x01\0\0\0" + b"\x03\0\0\0" + b"\x09\0\0\0" + b"abc"]
)
def test_a_set_that_is_cut_off_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTableError, match="end within"):
        decode_tree_map(data)


@given(sets, sets)
def test_many_ids_are_tested_at_once(values: set[int], asked: set[int]) -> None:
    some = {value for value in values if value & 0xFFFFFFFF < 1 << 20}
    ids = np.array(sorted(asked), dtype=np.uint64)
    assert row_ids(some).tester()(ids).tolist() == [value in some for value in sorted(asked)]
