"""Resolution of column names in expressions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.errors import InvalidExpressionError
from lancelake.expr.bind import bind, input_name
from lancelake.format.arrow_schema import from_arrow

SCHEMA = from_arrow(
    pa.schema(
        [
            ("a", pa.int64()),
            ("Camel", pa.int64()),
            ("camel", pa.int64()),
            ("MIXED", pa.int64()),
            ("with space", pa.int64()),
            ("größe", pa.int64()),
            ("tick`ed", pa.int64()),
            ("date", pa.date32()),
            ("double", pa.float64()),
            ("upper", pa.string()),
            ("select", pa.int64()),
            ("end", pa.int64()),
            ("not", pa.bool_()),
            ("st", pa.struct([("x", pa.int64()), ("In ner", pa.struct([("z", pa.int64())]))])),
            ("ls", pa.list_(pa.struct([("q", pa.int64())]))),
        ]
    )
)
FIRST = f'"{input_name(0)}"'
SECOND = f'"{input_name(1)}"'


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("A", ("a",)),
        ("`a`", ("a",)),
        ("Camel", ("Camel",)),
        ("camel", ("camel",)),
        ("CAMEL", ("Camel",)),
        ("mixed", ("MIXED",)),
        ("`with space`", ("with space",)),
        ("größe", ("größe",)),
        ("`tick``ed`", ("tick`ed",)),
        ("date", ("date",)),
        ("upper", ("upper",)),
        ("st", ("st",)),
        ("st.x", ("st", "x")),
        ("ST.X", ("st", "x")),
        ("`st`.`x`", ("st", "x")),
        ("st.`In ner`.z", ("st", "In ner", "z")),
    ],
)
def test_name_leads_to_one_column(text: str, path: tuple[str, ...]) -> None:
    bound = bind(text, SCHEMA)
    assert (bound.paths, bound.sql) == ((path,), FIRST)


def test_column_named_twice_is_one_input() -> None:
    bound = bind("a > 1 AND A < 5 OR camel = a", SCHEMA)
    assert bound.paths == (("a",), ("camel",))
    assert bound.sql == f"{FIRST} > 1 AND {FIRST} < 5 OR {SECOND} = {FIRST}"


def test_double_quotes_are_around_text() -> None:
    assert bind("""upper = "it's a" """, SCHEMA).sql == f"{FIRST} = 'it''s a' "


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("a = date '2020-01-01'", f"{FIRST} = date '2020-01-01'"),
        ('a = DATE "2020-01-01"', f"{FIRST} = DATE '2020-01-01'"),
        ("cast(a as date)", f"cast({FIRST} as date)"),
        ("a::double", f"{FIRST}::double"),
        ("upper(a)", f"upper({FIRST})"),
        ("upper (a)", f"upper ({FIRST})"),
        ("cast(a as binary)", f"cast({FIRST} as BYTEA)"),
        ("cast(a as datetime(3))", f"cast({FIRST} as TIMESTAMP(3))"),
        ("a = datetime '2020-01-01'", f"{FIRST} = TIMESTAMP '2020-01-01'"),
    ],
)
def test_type_or_function_of_the_name_of_a_column_stays(text: str, sql: str) -> None:
    assert bind(text, SCHEMA).sql == sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("select = 1", f"{FIRST} = 1"),
        ("a = 1 AND end > 2", f"{FIRST} = 1 AND {SECOND} > 2"),
        ("(end = 1)", f"({FIRST} = 1)"),
        ("not = true", f"{FIRST} = true"),
        ("NOT a = 1", f"NOT {FIRST} = 1"),
        ("CASE WHEN a = 1 THEN 2 END = 2", f"CASE WHEN {FIRST} = 1 THEN 2 END = 2"),
        ("`end` IS NULL", f"{FIRST} IS NULL"),
    ],
)
def test_reserved_word_is_a_column_where_only_a_value_can_stand(text: str, sql: str) -> None:
    assert bind(text, SCHEMA).sql == sql


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("ls[1].q", f"{FIRST}[1]['q']"),
        ("ls[1].`it's`", f"{FIRST}[1]['it''s']"),
        ("st.`it's`", f"{FIRST}['it''s']"),
        ("st.x.y", f"{FIRST}['y']"),
    ],
)
def test_member_of_a_value_is_looked_up_in_it(text: str, sql: str) -> None:
    assert bind(text, SCHEMA).sql == sql


@pytest.mark.parametrize("text", ["a = 1 -- why", "a /* it */ = 1", "-- first\na = 1"])
def test_comments_are_left_out(text: str) -> None:
    assert bind(text, SCHEMA).sql.split() == [*FIRST.split(), "=", "1"]


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("NOT regexp_match(upper, 'x')", f"NOT (regexp_match({FIRST}, 'x') IS NOT NULL)"),
        ("not (regexp_match(upper, '(x)'))", f"not ((regexp_match({FIRST}, '(x)') IS NOT NULL))"),
        ("regexp_match(upper, 'x')", f"regexp_match({FIRST}, 'x')"),
        ("NOT regexp_match(upper, 'x') IS NULL", f"NOT regexp_match({FIRST}, 'x') IS NULL"),
        (
            "NOT (a = 1 AND regexp_match(upper, 'x'))",
            f"NOT ({FIRST} = 1 AND (regexp_match({SECOND}, 'x') IS NOT NULL))",
        ),
        (
            "(regexp_match(upper, 'x')) OR a = 1",
            f"((regexp_match({FIRST}, 'x') IS NOT NULL)) OR {SECOND} = 1",
        ),
        (
            "a = 1 AND (regexp_match(upper, 'x'))[1] = 'x'",
            f"{FIRST} = 1 AND (regexp_match({SECOND}, 'x'))[1] = 'x'",
        ),
        (
            "array_length(regexp_match(upper, 'x')) = 1",
            f"array_length(regexp_match({FIRST}, 'x')) = 1",
        ),
    ],
)
def test_negated_or_joined_match_asks_whether_there_is_one(text: str, sql: str) -> None:
    assert bind(text, SCHEMA).sql == sql


def test_extra_name_is_a_column() -> None:
    assert bind("_rowid = 1", SCHEMA, extra_names=("_rowid",)).paths == (("_rowid",),)


def test_unknown_name_stays_for_the_engine() -> None:
    assert bind("current_date", SCHEMA).sql == "current_date"


def test_unknown_quoted_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidExpressionError, match=r"No field named nosuch .*Camel"):
        bind("`nosuch` = 1", SCHEMA)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_expression_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpressionError, match="empty"):
        bind(text, SCHEMA)
