from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.table.merge.match import KeyMarks

INT64 = st.integers(-(2**63), 2**63 - 1)


def marks_of(*keys: pa.Array) -> KeyMarks:
    marks = KeyMarks.of([pa.chunked_array([key]) for key in keys])
    assert marks is not None
    return marks


@given(keys=st.lists(INT64, min_size=1), others=st.lists(INT64))
def test_a_key_of_the_source_always_passes(keys: list[int], others: list[int]) -> None:
    marks = marks_of(pa.array(keys, pa.int64()))
    mask = marks.passes([pa.array([*keys, *others], pa.int64())])
    assert mask[: len(keys)].all()


@given(keys=st.lists(st.tuples(INT64, st.integers(0, 255)), min_size=1))
def test_a_key_of_several_columns_always_passes(keys: list[tuple[int, int]]) -> None:
    columns = [
        pa.array([k[0] for k in keys], pa.int64()),
        pa.array([k[1] for k in keys], pa.uint8()),
    ]
    assert marks_of(*columns).passes(columns).all()


def test_most_strange_keys_do_not_pass() -> None:
    chance = np.random.default_rng(1)
    keys, others = chance.integers(0, 1 << 62, (2, 100_000))
    passed = marks_of(pa.array(keys)).passes([pa.array(others)])
    assert passed.mean() < 0.2


@pytest.mark.parametrize(
    "dtype",
    [pa.int8(), pa.uint16(), pa.int32(), pa.date32(), pa.timestamp("us"), pa.time64("ns")],
    ids=str,
)
def test_values_of_any_fixed_width_are_looked_up_by_their_bits(dtype: pa.DataType) -> None:
    keys = pa.array([1, 5, 100]).cast(_number(dtype)).view(dtype)
    assert marks_of(keys).passes([keys.slice(1)]).all()


def _number(dtype: pa.DataType) -> pa.DataType:
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[dtype.bit_width]


def test_a_null_neither_fails_nor_hides_other_keys() -> None:
    marks = marks_of(pa.array([7, None], pa.int64()))
    assert marks.passes([pa.array([None, 7], pa.int64())])[1]


def test_columns_of_no_fixed_width_are_left_out() -> None:
    keys = [pa.array(["a", "b"]), pa.array([1, 2])]
    assert marks_of(*keys).columns == (1,)
    assert KeyMarks.of([pa.chunked_array([keys[0]])]) is None
