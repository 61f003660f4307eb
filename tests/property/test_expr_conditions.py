"""Conditions evaluated by Arrow and part by part, compared with DataFusion on the whole text."""

from __future__ import annotations

import math
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lancelake.expr.bind import bind
from lancelake.expr.condition import ListMatch, ListTest, SqlLeaf, leaves
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.predicate import Predicate, _SqlSource, condition_sql, predicate
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
    "f32": pa.float32(),
    "d": pa.date32(),
    "ts": pa.timestamp("us"),
    "bin": pa.binary(),
    "labels": pa.list_(pa.string()),
    "ratios": pa.large_list(pa.float32()),
}
SCHEMA = pa.schema([pa.field(name, dtype) for name, dtype in TYPES.items()])
NUMBERS = ("i8", "i32", "i64", "u8", "u64")
EDGES = [0, 1, -1, 3, 127, 128, -128, 255, 256, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, -(1 << 63)]
WORDS = ["", "a", "A", "ab", "b", "ä", "é", "𝄞", "\x00", "zz"]
NAN = float("nan")
FLOATS = [0.0, -0.0, 0.5, 1.0, NAN, math.copysign(NAN, -1), float("inf"), float("-inf")]
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
        return st.none() | st.sampled_from(FLOATS) | st.floats(width=dtype.bit_width)
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        return st.none() | st.integers(-3, 3)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return st.none() | st.lists(_values(dtype.value_type), max_size=3)
    if pa.types.is_binary(dtype):
        return st.none() | st.sampled_from([b"", b"a", b"\xff"])
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
fractions = st.sampled_from(["0.0", "-0.0", "0", "1", "0.5", "1e300", "CAST('NaN' AS DOUBLE)"])
days = st.sampled_from(["DATE '1970-01-01'", "DATE '1970-01-03'", "arrow_cast(-1, 'Date32')"])
times = st.sampled_from(
    ["arrow_cast(1, 'Timestamp(Microsecond, None)')", "TIMESTAMP '1970-01-01 00:00:00.000002'"]
)
bytes_ = st.sampled_from(["X''", "X'61'", "X'ff'"])
tests = st.sampled_from(["starts_with({}, 'a')", "ends_with({}, 'b')", "contains({}, 'a')"])
patterns = st.sampled_from(["'a%'", "'%b'", "'%a%'", "'ab'", "'_b'", "'a\\%'", "'%'", "''"])


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


def _listed(column: str, constants: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw a test of the elements of a list."""
    some = st.lists(constants | st.just("NULL"), min_size=1, max_size=3).map(", ".join)
    one = st.sampled_from(["array_has", "array_contains", "list_has", "list_contains"])
    many = st.sampled_from(["array_has_any", "array_has_all", "arrays_overlap"])
    return st.one_of(
        st.builds(lambda name, c: f"{name}({column}, {c})", one, constants),
        st.builds(lambda name, items: f"{name}({column}, [{items}])", many, some),
    )


conditions = st.recursive(
    st.one_of(
        st.sampled_from(NUMBERS).flatmap(lambda name: _compared(name, numbers)),
        st.sampled_from(["t", "lt"]).flatmap(lambda name: _compared(name, words)),
        st.sampled_from(["f", "f32"]).flatmap(lambda name: _compared(name, fractions)),
        _compared("d", days),
        _compared("ts", times),
        _compared("bin", bytes_),
        st.builds(lambda test, name: test.format(name), tests, st.sampled_from(["t", "lt"])),
        st.builds(lambda name, p: f"{name} like {p}", st.sampled_from(["t", "lt"]), patterns),
        st.builds(lambda name, p: f"{name} not like {p}", st.sampled_from(["t", "lt"]), patterns),
        _listed("labels", words),
        _listed("ratios", fractions),
        st.sampled_from(["b", "b = true", "b != false", "b is null", "b is true", "true", "null"]),
        st.sampled_from(["i64 + 1 > 2", "abs(f) < 1", "upper(t) = 'A'", "i8 > 1.5", "u8 > -1"]),
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
def test_a_condition_has_the_truth_that_datafusion_gives_it(
    batch: pa.RecordBatch, text: str
) -> None:
    assume(text not in ("null", "not (null)"))
    whole = Evaluator(bind(text, from_arrow(SCHEMA)), is_condition=True)
    assert understood(text)(batch).to_pylist() == whole(batch).to_pylist()


@given(text=conditions)
def test_a_condition_that_is_read_here_is_the_one_that_datafusion_reads(text: str) -> None:
    assume(text not in ("null", "not (null)"))
    read_here = understood(text).condition
    with mock.patch.object(_SqlSource, "plain", return_value=None):
        assert condition_sql(understood(text).condition) == condition_sql(read_here)


@given(
    batch=batches(),
    items=st.lists(st.sampled_from(FLOATS), min_size=1, max_size=8),
    name=st.sampled_from(["f", "f32"]),
)
def test_a_list_of_numbers_means_the_same_as_its_comparisons(
    batch: pa.RecordBatch, items: list[float], name: str
) -> None:
    texts = [f"CAST('{item}' AS DOUBLE)" for item in items]
    chain = " or ".join(f"{name} = {text}" for text in texts)
    whole = Evaluator(bind(chain, from_arrow(SCHEMA)), is_condition=True)
    expected = whole(batch).to_pylist()
    assert understood(f"{name} in ({', '.join(texts)})")(batch).to_pylist() == expected
    assert understood(chain)(batch).to_pylist() == expected
    slow = understood(f"abs({name}) in ({', '.join(texts)})")(batch).to_pylist()
    positive = " or ".join(f"abs({name}) = {text}" for text in texts)
    assert slow == understood(positive)(batch).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "i64 > 3",
        "3 < i8",
        "t = 'a' and (u8 in (1, 2) or not b)",
        "i32 not between 1 and 4",
        "lt is not null",
        "i64 = i64",
        "f > 1",
        "f in (0.0, 1, 2, 3)",
        "d = DATE '2020-01-01'",
        "t like 'a%'",
    ],
)
def test_plain_conditions_are_left_to_arrow(text: str) -> None:
    assert not understood(text).needs_datafusion


@pytest.mark.parametrize(
    "text",
    ["i8 > 300", "i8 > 1.5", "u8 > -1", "i8 = u8", "i64 = null", "i64 + 1 > 2"],
)
def test_other_conditions_are_left_to_datafusion(text: str) -> None:
    assert [type(leaf) for leaf in leaves(understood(text).condition)] == [SqlLeaf]


@pytest.mark.parametrize(
    ("text", "test", "values"),
    [
        ("array_has(labels, 'a')", ListTest.ANY, ["a"]),
        ("array_contains(labels, 'a')", ListTest.ANY, ["a"]),
        ("list_has(labels, 'a')", ListTest.ANY, ["a"]),
        ("array_has_any(labels, ['a', NULL])", ListTest.ANY, ["a", None]),
        ("array_has_all(labels, make_array('a', 'b'))", ListTest.ALL, ["a", "b"]),
        ("array_has_all(ratios, [1, 0.5])", ListTest.ALL, [1.0, 0.5]),
    ],
)
def test_tests_of_list_elements_are_read(text: str, test: ListTest, values: list[object]) -> None:
    (leaf,) = leaves(understood(f"not {text}").condition)
    assert isinstance(leaf, ListMatch)
    assert (leaf.test, leaf.values.to_pylist()) == (test, values)


@pytest.mark.parametrize(
    "text",
    [
        "array_has(labels, NULL)",
        "array_has_any(labels, [])",
        "array_has(labels, t)",
        "array_has(ratios, 0.1)",
        "array_has(ratios, random())",
        "array_has_any(['a'], labels)",
    ],
)
def test_other_calls_with_lists_are_left_to_datafusion(text: str) -> None:
    assert [type(leaf) for leaf in leaves(understood(text).condition)] == [SqlLeaf]


def understood(text: str) -> Predicate:
    return predicate(text, from_arrow(SCHEMA), SCHEMA, ())
