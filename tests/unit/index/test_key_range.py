"""Conditions become ranges of keys, whose bounds both zeros share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.expr.condition import Column, Comparison, IsNull, Operator, TextMatch, TextTest
from lancelake.index.order import Cut, KeyRange, keys_of, place_of, points_of, range_of

FLOATS = Column(path=("f",), dtype=pa.float64())
TEXTS = Column(path=("t",), dtype=pa.string())
BEFORE_ZEROS, AFTER_ZEROS = Cut(-1, False), Cut(0, True)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    ("operator", "wanted"),
    [
        (Operator.EQUAL, KeyRange(lower=BEFORE_ZEROS, upper=AFTER_ZEROS)),
        (Operator.LESS, KeyRange(upper=BEFORE_ZEROS)),
        (Operator.LESS_EQUAL, KeyRange(upper=AFTER_ZEROS)),
        (Operator.GREATER, KeyRange(lower=AFTER_ZEROS)),
        (Operator.GREATER_EQUAL, KeyRange(lower=BEFORE_ZEROS)),
    ],
)
def test_no_bound_separates_the_zeros(zero: float, operator: Operator, wanted: KeyRange) -> None:
    leaf = Comparison(column=FLOATS, operator=operator, value=pa.scalar(zero))
    assert range_of(leaf) == wanted


def test_zeros_in_a_list_are_one_point() -> None:
    points = points_of(pa.array([0.0, 2.0, -0.0]))
    assert points.first.to_pylist()[0] == -1
    assert points.last.to_pylist()[0] == 0
    assert len(points.first) == 2


@pytest.mark.parametrize(
    ("text", "upper"), [("ab", b"ac"), ("", None), ("a\x7f", b"a\x80"), ("é", b"\xc3\xaa")]
)
def test_texts_with_a_start_end_before_the_next_one(text: str, upper: bytes | None) -> None:
    found = range_of(TextMatch(column=TEXTS, test=TextTest.STARTS_WITH, text=text))
    assert found is not None
    assert found.lower == Cut(text.encode(), False)
    assert found.upper == (None if upper is None else Cut(upper, False))


@pytest.mark.parametrize(
    "leaf",
    [
        IsNull(column=TEXTS),
        TextMatch(column=TEXTS, test=TextTest.CONTAINS, text="a"),
        Comparison(column=TEXTS, operator=Operator.NOT_EQUAL, value=pa.scalar("a")),
    ],
)
def test_other_conditions_are_no_range(leaf) -> None:
    assert range_of(leaf) is None


def test_a_range_within_two_is_bounded_by_both() -> None:
    one = KeyRange(lower=Cut(1, False), upper=Cut(9, True))
    other = KeyRange(lower=Cut(1, True), upper=Cut(9, False))
    assert one & other == KeyRange(lower=Cut(1, True), upper=Cut(9, False))
    assert one & KeyRange() == one


def test_a_cut_is_before_or_after_equal_keys() -> None:
    keys = pa.array([1, 2, 2, 3])
    assert place_of(keys, Cut(2, False), 0) == 1
    assert place_of(keys, Cut(2, True), 0) == 3
    assert place_of(keys, None, 4) == 4


def test_large_unsigned_keys_are_compared_exactly() -> None:
    most = (1 << 64) - 1
    keys = pa.array([most - 2, most - 1, most], pa.uint64())
    assert place_of(keys, Cut(most - 1, False), 0) == 1
    assert place_of(keys, Cut(most - 1, True), 0) == 2


@pytest.mark.parametrize("dtype", [pa.int64(), pa.uint8(), pa.string(), pa.decimal128(38, 2)])
def test_points_of_a_range_are_found_among_keys(dtype: pa.DataType) -> None:
    values = pa.array([1, 2, 2, 3, 5]).cast(dtype)
    points = points_of(pa.array([5, 2, 4, 0]).cast(dtype))
    assert points.places(keys_of(values), 0, 4) == ([0, 1, 4, 4], [0, 3, 4, 5])
    assert points.places(keys_of(values), 1, 2) == ([1], [3])
