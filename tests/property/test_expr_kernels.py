"""Does Arrow give the same truth as DataFusion, wherever it is asked instead?"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.expr import engine
from lancelake.expr.bind import bind
from lancelake.expr.engine import Evaluator
from lancelake.format.arrow_schema import from_arrow

TYPES = {
    "i8": pa.int8(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u8": pa.uint8(),
    "u64": pa.uint64(),
    "t": pa.string(),
    "lt": pa.large_string(),
    "b": pa.bool_(),
    "f": pa.float64(),
}
SCHEMA = pa.schema([pa.field(name, dtype) for name, dtype in TYPES.items()])
NUMBERS = ("i8", "i32", "i64", "u8", "u64")
EDGES = [0, 1, -1, 3, 127, 128, -128, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, -(1 << 63)]
WORDS = ["", "a", "A", "ab", "b", "ä", "é", "𝄞", "\x00", "zz"]
OPERATORS = ["=", "!=", "<>", "<", "<=", ">", ">="]


def _values(dtype: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_integer(dtype):
        low = -(1 << (dtype.bit_width - 1)) if pa.types.is_signed_integer(dtype) else 0
        high = low + (1 << dtype.bit_width) - 1
        near = [n for n in EDGES if low <= n <= high]
        return st.one_of(st.none(), st.sampled_from(near), st.integers(low, high))
    if pa.types.is_boolean(dtype):
        return st.none() | st.booleans()
    if pa.types.is_floating(dtype):
        return st.none() | st.floats()
    return st.none() | st.sampled_from(WORDS)


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """Draw some rows."""
    count = draw(st.integers(0, 6))
    columns = [
        pa.array(draw(st.lists(_values(dtype), min_size=count, max_size=count)), dtype)
        for dtype in TYPES.values()
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


numbers = st.sampled_from(EDGES).map(str) | st.integers(-300, 300).map(str)
words = st.sampled_from([w for w in WORDS if w != "\x00"]).map(_quoted)
operators = st.sampled_from(OPERATORS)


def _compared(column: str, constants: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(constants, min_size=1, max_size=3).map(", ".join)
    negated = st.sampled_from(["", "not "])
    return st.one_of(
        st.builds(lambda op, c: f"{column} {op} {c}", operators, constants),
        st.builds(lambda op, c: f"{c} {op} {column}", operators, constants),
        st.builds(lambda no, items: f"{column} {no}in ({items})", negated, some),
        st.builds(
            lambda no, a, b: f"{column} {no}between {a} and {b}", negated, constants, constants
        ),
        st.builds(lambda no: f"{column} is {no}null", negated),
    )


conditions = st.recursive(
    st.one_of(
        st.sampled_from(NUMBERS).flatmap(lambda name: _compared(name, numbers)),
        st.sampled_from(["t", "lt"]).flatmap(lambda name: _compared(name, words)),
        st.sampled_from(["b", "b = true", "b != false", "b is null", "f > 1", "f is null"]),
        st.builds(
            lambda a, op, b: f"{a} {op} {b}",
            st.sampled_from(NUMBERS),
            operators,
            st.sampled_from(NUMBERS),
        ),
    ),
    lambda inner: st.one_of(
        st.builds(lambda a, op, b: f"({a} {op} {b})", inner, st.sampled_from(["and", "or"]), inner),
        st.builds(lambda a: f"not ({a})", inner),
    ),
    max_leaves=5,
)


@given(batch=batches(), text=conditions)
def test_both_find_the_same_truth(batch: pa.RecordBatch, text: str) -> None:
    evaluate = Evaluator(bind(text, from_arrow(SCHEMA)), is_condition=True)
    inputs = evaluate._inputs(batch)
    assert evaluate(batch) == evaluate._by_datafusion(inputs)


@pytest.mark.parametrize(
    "text",
    [
        "i64 > 3",
        "3 < i8",
        "t = 'a' and (u8 in (1, 2) or not b)",
        "i32 not between 1 and 4",
        "lt is not null",
        "i64 = i64",
    ],
)
def test_plain_conditions_are_left_to_arrow(text: str) -> None:
    assert _is_left_to_arrow(text)


@pytest.mark.parametrize(
    "text",
    ["f > 1", "i8 > 300", "i8 > 1.5", "u8 > -1", "t > 1", "i8 = u8", "i64 = null", "i64 + 1 > 2"],
)
def test_other_conditions_are_not(text: str) -> None:
    assert not _is_left_to_arrow(text)


def _is_left_to_arrow(text: str) -> bool:
    bound = bind(text, from_arrow(SCHEMA))
    empty = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    inputs = Evaluator(bound, is_condition=True)._inputs(empty)
    return engine._kernel(bound.sql, inputs.schema) is not None
