"""Keys are ordered as DataFusion sorts values, and give the values back."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.order import (
    are_in_order,
    changes,
    has_order,
    key_array,
    key_of,
    keys_of,
    running_maximum,
    search,
    sort_positions,
    values_of,
)
from lancelake.index.sort import merge_sorted, value_sorted
from tests.strategies.index_values import TYPES, arrays, pool


def bits(values: pa.Array) -> list[object]:
    """Return values such that equal ones have equal bits."""
    return keys_of(values).to_pylist()


def batch(values: pa.Array, first: int = 0) -> pa.RecordBatch:
    ids = pa.array(range(first, first + len(values)), pa.uint64())
    return pa.RecordBatch.from_arrays([values, ids], names=[VALUE, ROW_ID])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_sorted_values_have_ascending_keys_after_the_nulls(dtype: pa.DataType) -> None:
    some = pool(dtype)
    values = pa.array([*some, None, *reversed(some), None], dtype)
    found = pa.Table.from_batches(value_sorted(dtype, [batch(values)]))
    keys = keys_of(found.column(0).combine_chunks()).to_pylist()
    assert keys[:2] == [None, None]
    assert keys[2:] == sorted(keys[2:])
    assert sorted(found.column(1).to_pylist()) == list(range(len(values)))


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_values_are_restored_from_their_keys(dtype: pa.DataType) -> None:
    values = pa.array([*pool(dtype), None], dtype)
    restored = values_of(key_array(keys_of(values).to_pylist(), dtype), dtype)
    assert restored.type == dtype
    assert bits(restored) == bits(values)
    assert key_of(values[0]) == keys_of(values)[0].as_py()


@given(
    st.sampled_from(TYPES).flatmap(
        lambda dtype: st.lists(arrays(dtype, 8), min_size=1, max_size=4).map(lambda a: (dtype, a))
    )
)
def test_merged_streams_are_the_sorted_rows_of_all(case) -> None:
    dtype, parts = case
    streams = [
        [b.slice(n, 2) for b in value_sorted(dtype, [batch(part, 100 * at)]) for n in (0, 2, 4, 6)]
        for at, part in enumerate(parts)
    ]
    expected = {
        row: key
        for at, part in enumerate(parts)
        for row, key in enumerate(keys_of(part).to_pylist(), 100 * at)
    }
    rows = [
        (key, row)
        for b in merge_sorted(dtype, streams)
        for key, row in zip(keys_of(b.column(0)).to_pylist(), b.column(1).to_pylist(), strict=True)
    ]
    keys = [key for key, _ in rows]
    nulls = keys.count(None)
    assert keys[:nulls] == [None] * nulls
    assert keys[nulls:] == sorted(keys[nulls:])
    assert {row: key for key, row in rows} == expected
    assert len(rows) == len(expected)


@pytest.mark.parametrize("values", [["a", "b", "b", "d"], [1, 3, 3, 9]])
def test_keys_are_found_on_either_side_of_equal_ones(values: list[object]) -> None:
    keys = keys_of(pa.array(values))
    assert search(keys, keys[1:2], "left").tolist() == [1]
    assert search(keys, keys[1:2], "right").tolist() == [3]
    assert changes(keys).tolist() == [1, 3]


def test_the_greatest_key_so_far_never_descends() -> None:
    assert running_maximum(pa.array([1, 4, 2, 5])).to_pylist() == [1, 4, 4, 5]


def test_positions_are_sorted_with_nulls_first() -> None:
    assert sort_positions(pa.array([3, None, 1])).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("low", "high", "is_ordered"),
    [
        ([1, 2], [2, 3], True),
        ([None, None], [None, 3], True),
        ([1, 2], [3, 4], False),
        ([1, None], [3, 4], False),
        ([], [], True),
    ],
)
def test_bounds_are_in_order_if_none_starts_before_the_last_ends(low, high, is_ordered) -> None:
    assert are_in_order(pa.array(low, pa.int64()), pa.array(high, pa.int64())) is is_ordered


@pytest.mark.parametrize(
    "dtype", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.null()], ids=str
)
def test_nested_types_have_no_order(dtype: pa.DataType) -> None:
    assert not has_order(dtype)
