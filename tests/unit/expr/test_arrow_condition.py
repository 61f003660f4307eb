"""Expressions of pyarrow mean what they mean in SQL."""

from __future__ import annotations

import datetime as dt
import functools
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelake.errors import InvalidExpressionError, UnsupportedError
from lancelake.expr.predicate import Predicate, predicate
from lancelake.format.arrow_schema import from_arrow

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("small", pa.int8()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("f", pa.float32()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("m", pa.decimal128(10, 2)),
        ("bin", pa.binary()),
        ("l", pa.list_(pa.int64())),
        ("st", pa.struct([("x", pa.int64())])),
        ("od`d", pa.int64()),
    ]
)
a, s, f, b = pc.field("a"), pc.field("s"), pc.field("f"), pc.field("b")


def understood(filter: pc.Expression | str) -> Predicate:
    return predicate(filter, from_arrow(SCHEMA), SCHEMA, ("_rowid",))


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (a > 1, "a > 1"),
        (pc.scalar(1) < a, "a > 1"),
        (pc.field("A") == 1, "a = 1"),
        (pc.field("small") == 300, "small = 300"),
        (f == 0.1, "f = 0.1"),
        (f == pa.scalar(0.5, pa.float16()), "f = 0.5"),
        (pc.field("st", "x") == 1, "st.x = 1"),
        (pc.field("od`d") == 1, "`od``d` = 1"),
        (s == "it's", "s = 'it''s'"),
        (b, "b"),
        (~b, "not b"),
        (b == True, "b = true"),  # noqa: E712  # an expression
        (a == pc.field("od`d"), "a = `od``d`"),
        (f == pc.field("f"), "f = f"),
        (a == pa.scalar(None, pa.int64()), "a = NULL"),
        (~a.isin([1, 2, None]), "a not in (1, 2, NULL)"),
        (a.isin(pa.array([], pa.int64())), "false"),
        (s.isin(["x", "y"]), "s in ('x', 'y')"),
        (f.isin([0.5, 2.0]), "f in (0.5, 2)"),
        ((a == 1) & (a == 2) & b, "a = 1 and a = 2 and b"),
        ((a == 1) | (a == 2) | b, "a = 1 or a = 2 or b"),
        (a.is_null(), "a is null"),
        (a.is_valid(), "a is not null"),
        (f.is_null(nan_is_null=True), "(f IS NULL) OR isnan(f)"),
        (pc.field("d") == dt.date(1970, 1, 3), "d = DATE '1970-01-03'"),
        (
            pc.field("t") > pa.scalar(5, pa.timestamp("ms")),
            "t > TIMESTAMP '1970-01-01 00:00:00.005'",
        ),
        (
            pc.field("m") == pa.scalar(Decimal("1.50"), pa.decimal128(10, 2)),
            "m = CAST('1.50' AS DECIMAL(10, 2))",
        ),
        (pc.field("bin") == b"a", "bin = X'61'"),
        (pc.starts_with(s, "a"), "starts_with(s, 'a')"),
        (pc.ends_with(s, "a"), "ends_with(s, 'a')"),
        (pc.match_substring(s, "a"), "contains(s, 'a')"),
        (pc.match_like(s, "%a"), "s like '%a'"),
        (pc.match_like(s, "a_b"), "s LIKE 'a_b'"),
        (pc.match_like(s, "a%", ignore_case=True), "s ILIKE 'a%'"),
        (a.cast(pa.int8()) == 1, "arrow_cast(a, 'Int8') = 1"),
        (a - 1 < pc.field("od`d") * 2, "(a - 1) < (`od``d` * 2)"),
        ((a + 1 == 2) | (a + 2 == 3), "((a + 1) = 2) OR ((a + 2) = 3)"),
        (pc.scalar(True), "true"),
    ],
    ids=str,
)
def test_an_expression_is_the_condition_of_its_sql(expression: pc.Expression, sql: str) -> None:
    assert understood(expression).condition == understood(sql).condition


@pytest.mark.parametrize(
    ("expression", "text"),
    [((a > 1) & s.isin(["x"]), "(a > 1) AND (s IN ('x'))"), (a + 1 > 2, "(a + 1) > 2")],
)
def test_an_expression_is_shown_in_sql(expression: pc.Expression, text: str) -> None:
    assert understood(expression).text == text


@pytest.mark.parametrize(
    ("expression", "sqls"),
    [
        (s == 5, ["s = 5", "s = (5)", "(s) = 5", "5 = s", "(5) = s", "a = 1 AND s = (5)"]),
        (s > 1.5, ["s > 1.5", "s > (1.5)", "s between 1.5 and 2", "s between (1.5) and 2"]),
        (s.isin([5, 6]), ["s in (5)", "s in ((5), 6)", "s in ('a', 5)", "s in (('a'), 5)"]),
        (s == 5, ["s like 5", "s like (5)"]),
        (pc.field("nosuch") == 5, ["nosuch = 5"]),
        (a == "x", ["a = 'x'"]),
        (b == 5, ["b = 5"]),
        (s, ["s"]),
        (pc.scalar(None), ["NULL"]),
        (pc.starts_with(a, "x"), ["starts_with(a, 'x')"]),
    ],
    ids=str,
)
def test_an_error_is_the_same_however_a_condition_is_written(
    expression: pc.Expression, sqls: list[str]
) -> None:
    with pytest.raises(InvalidExpressionError) as raised:
        understood(expression)
    for sql in sqls:
        with pytest.raises(InvalidExpressionError) as again:
            understood(sql)
        assert str(again.value) == str(raised.value)


def test_a_number_that_is_cast_is_compared_as_a_number() -> None:
    rows = pa.record_batch({"s": ["5", "6"]})
    assert understood("s = CAST(5 AS BIGINT)")(rows).to_pylist() == [True, False]


def test_of_two_values_none_is_taken_where_the_condition_is_null() -> None:
    rows = pa.record_batch({"b": [True, False, None]})
    assert understood(pc.if_else(b, True, False))(rows).to_pylist() == [True, False, None]


def test_values_may_be_chosen_by_values_that_are_chosen() -> None:
    rows = pa.record_batch({"b": [True, False]})
    chosen = functools.reduce(lambda value, _: pc.if_else(value, True, False), range(14), b)
    assert understood(chosen)(rows).to_pylist() == [True, False]


def test_an_expression_that_is_nested_too_deep_is_refused() -> None:
    join = (lambda inner: (a == 1) & inner, lambda inner: (a == 2) | inner)
    deep = functools.reduce(lambda inner, level: join[level % 2](inner), range(99), b)
    assert understood(deep).paths
    with pytest.raises(InvalidExpressionError, match="more than 100 deep"):
        understood(~deep)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (pc.field(0) == 1, "by position"),
        (pc.utf8_reverse(s) == "a", "utf8_reverse"),
        (pc.field("l") == pa.scalar([1]), "constants of type list"),
    ],
)
def test_what_sql_cannot_state_is_refused(expression: pc.Expression, problem: str) -> None:
    with pytest.raises(UnsupportedError, match=problem):
        understood(expression)
