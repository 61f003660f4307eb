"""Row-by-row comparison of columns of every type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.data.arrays.batches import differing

NAN = float("nan")
POINT = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
CASES: list[tuple[pa.DataType, list[Any], list[Any], list[bool]]] = [
    (pa.int64(), [1, None, None, 2], [1, None, 1, 3], [False, False, True, True]),
    (pa.float32(), [NAN, NAN, None, 0.0], [NAN, 1.0, NAN, -0.0], [False, True, True, False]),
    (pa.float16(), [NAN, 1.0], [NAN, 2.0], [False, True]),
    (pa.string(), ["a", "", None], ["a", None, None], [False, True, False]),
    (pa.bool_(), [True, None], [False, None], [True, False]),
    (pa.null(), [None, None], [None, None], [False, False]),
    (pa.list_(pa.int8()), [[1, 2], [], None, [1]], [[1, 3], None, None, [1, 1]],
     [True, True, False, True]),
    (pa.large_list(pa.list_(pa.string())), [[["a"], None], [[]]], [[["a"], None], [None]],
     [False, True]),
    (pa.list_(pa.float64(), 2), [[1.0, NAN], [1.0, 2.0], None], [[1.0, NAN], [1.0, 3.0], None],
     [False, True, False]),
    (POINT, [{"x": 1, "y": ["a"]}, {"x": 1, "y": None}, None], [{"x": 1, "y": ["a"]},
     {"x": 1, "y": []}, {"x": None, "y": None}], [False, True, True]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("a", 1)], []], [[("a", 1)], [("a", 2)], None],
     [False, True, True]),
    (pa.decimal128(5, 2), [None, 1], [None, 2], [False, True]),
    (pa.timestamp("ns", "UTC"), [1, 2], [1, 3], [False, True]),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "one", "other", "expected"), CASES, ids=lambda v: str(v)[:20])
def test_rows_that_differ(
    dtype: pa.DataType, one: list[Any], other: list[Any], expected: list[bool]
) -> None:
    arrays = pa.array(one, dtype), pa.array(other, dtype)
    assert differing(*arrays).tolist() == expected


def test_dictionaries_are_compared_by_value() -> None:
    one = pa.DictionaryArray.from_arrays([0, 1], ["a", "b"])
    other = pa.DictionaryArray.from_arrays([1, 1], ["c", "a"])
    assert differing(one, other).tolist() == [False, True]


def test_values_below_a_null_do_not_count() -> None:
    offsets = pa.array([0, 2, 3], pa.int32())
    one = pa.ListArray.from_arrays(offsets, pa.array([1, 2, 3]), mask=pa.array([True, False]))
    other = pa.array([None, [3]], one.type)
    assert differing(one, other).tolist() == [False, False]


VALUES = st.lists(st.none() | st.lists(st.none() | st.integers(0, 2), max_size=3), max_size=12)


@given(VALUES, VALUES, st.integers(0, 4))
def test_lists_differ_as_python_says(one: list[Any], other: list[Any], start: int) -> None:
    count = min(len(one), len(other))
    dtype = pa.list_(pa.int64())
    arrays = [pa.array(values[:count], dtype)[start:] for values in (one, other)]
    expected = [a != b for a, b in zip(one[start:count], other[start:count], strict=True)]
    assert differing(*arrays).tolist() == expected
