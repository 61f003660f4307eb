"""Results of expressions."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lancelake.errors import InvalidExpressionError
from lancelake.expr.bind import bind
from lancelake.expr.evaluate import Evaluator
from lancelake.format.arrow_schema import from_arrow

NAN = float("nan")
STRUCT = pa.struct([("x", pa.int64()), ("b", pa.bool_())])
BATCH = pa.RecordBatch.from_pydict(
    {
        "i": pa.array([1, 2, None], pa.int64()),
        "f": pa.array([NAN, 0.5, None], pa.float64()),
        "s": pa.array(["a", "B", None]),
        "st": pa.array([{"x": 1, "b": True}, None, {"x": None, "b": None}], STRUCT),
        "l": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
        "d": pa.array(["x", "y", None]).dictionary_encode(),
        "small": pa.array([1, 255, None], pa.uint8()),
    }
)
SCHEMA = from_arrow(BATCH.schema)


def value(sql: str, batch: pa.RecordBatch = BATCH, *, is_condition: bool = False) -> list[Any]:
    evaluator = Evaluator(bind(sql, SCHEMA), is_condition=is_condition)
    return list(evaluator(batch).to_pylist())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("i + 1", [2, 3, None]),
        ("i = 1", [True, False, None]),
        ("i IS NULL", [False, False, True]),
        ("st.x", [1, None, None]),
        ("st.b", [True, None, None]),
        ("st IS NULL", [False, True, False]),
        ("coalesce(st.x, 7)", [1, 7, 7]),
        ("f = f", [True, True, None]),
        ("f > 1e300", [True, False, None]),
        ("upper(s)", ["A", "B", None]),
        ("s || d", ["ax", "By", None]),
        ("d = 'x'", [True, False, None]),
        ("array_has(l, 2)", [True, False, None]),
        ("l[1]", [1, None, None]),
        ("CASE WHEN i = 1 THEN 'one' ELSE 'more' END", ["one", "more", "more"]),
        ("CAST(i AS string)", ["1", "2", None]),
        ("1", [1, 1, 1]),
        ("'x'", ["x", "x", "x"]),
    ],
)
def test_value_for_each_row(sql: str, expected: list[Any]) -> None:
    assert value(sql) == expected


def test_no_rows_give_no_values() -> None:
    assert value("i + 1", BATCH.slice(0, 0)) == []


def test_constant_has_a_value_for_each_row_of_an_empty_batch() -> None:
    assert value("1", BATCH.slice(0, 0)) == []


def test_regexp_match_is_a_list_of_groups() -> None:
    assert value("regexp_match(s, '(?i)[ab]')") == [["a"], ["B"], None]


def test_regexp_match_is_true_or_false_in_a_condition() -> None:
    assert value("regexp_match(s, 'a')", is_condition=True) == [True, False, False]


def test_text_and_bytes_do_not_come_as_views() -> None:
    field = Evaluator(bind("concat(s, 'x')", SCHEMA)).result_field("v", BATCH.schema)
    assert field.type in (pa.string(), pa.large_string())


@pytest.mark.parametrize(
    ("sql", "field"),
    [
        ("i + 1", pa.field("v", pa.int64())),
        ("small + 1", pa.field("v", pa.uint8())),
        ("i IS NULL", pa.field("v", pa.bool_(), nullable=False)),
        ("coalesce(i, 0)", pa.field("v", pa.int64(), nullable=False)),
        ("st.x", pa.field("v", pa.int64())),
    ],
)
def test_field_of_the_result(sql: str, field: pa.Field) -> None:
    assert Evaluator(bind(sql, SCHEMA)).result_field("v", BATCH.schema) == field


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("nosuch = 1", "No field named nosuch"),
        ("st.nosuch = 1", "nosuch"),
        ("nosuch(i)", "Invalid function 'nosuch'"),
        ("array_has(i, 1)", "array_has does not support type Int64"),
        ("i = 'one'", "Cannot cast string 'one'"),
        ("i +", "Expected: an expression, found: EOF"),
        ("(i = 1", "Expected: [)], found: EOF"),
        ("i = 1) AS x, (i", "cannot be evaluated"),
        ("i = 1; DROP TABLE x", "cannot be evaluated"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_any_row(sql: str, reason: str) -> None:
    with pytest.raises(InvalidExpressionError, match=reason):
        Evaluator(bind(sql, SCHEMA)).result_field("v", BATCH.schema)


def test_failure_on_a_value_names_the_expression() -> None:
    with pytest.raises(InvalidExpressionError, match="100 / i"):
        value("100 / i", BATCH.set_column(0, "i", pa.array([0, 1, 2])))


@pytest.mark.parametrize("name", ["c0", "none", "value", "t", "input"])
def test_no_name_reaches_what_only_the_engine_knows(name: str) -> None:
    with pytest.raises(InvalidExpressionError, match=f"No field named {name}"):
        value(f"i = 1 AND {name} = 1")


def test_a_chain_of_a_thousand_conditions_is_evaluated() -> None:
    chain = " OR ".join(f"i = {n}" for n in range(2, 1002))
    assert value(chain, is_condition=True) == [False, True, None]
