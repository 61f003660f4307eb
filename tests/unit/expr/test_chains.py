"""The boolean structure that is read from SQL text."""

from __future__ import annotations

from typing import Any

import pytest

from lancelake.errors import InvalidExpressionError
from lancelake.expr.structure import (
    MAX_CHAIN,
    MAX_REREADS,
    Chain,
    Negation,
    check_chains,
    structure,
    tokenize,
)


def read(text: str) -> Any:
    tokens = tokenize(text)

    def shown(found: Any) -> Any:
        if isinstance(found, Chain):
            return (found.word, *(shown(part) for part in found.parts))
        if isinstance(found, Negation):
            return ("NOT", shown(found.part))
        return "".join(token.text for token in tokens[found.start : found.stop]).strip()

    return shown(structure(tokens, text, lambda position: tokens[position].text == "col"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", "a = 1"),
        ("a and b or not c", ("OR", ("AND", "a", "b"), ("NOT", "c"))),
        ("(a or b) and c", ("AND", ("OR", "a", "b"), "c")),
        ("x between 1 and 2 and d", ("AND", "x between 1 and 2", "d")),
        ("x between (1) and 2 or d", ("OR", "x between (1) and 2", "d")),
        (
            "case when a and b then c or d end = 1 or f",
            ("OR", "case when a and b then c or d end = 1", "f"),
        ),
        ("f(a and b) or c", ("OR", "f(a and b)", "c")),
        ("(a + 1) * 2 > 3 and (x)", ("AND", "(a + 1) * 2 > 3", "x")),
        ("a is not null and b not in (1)", ("AND", "a is not null", "b not in (1)")),
        ("((a = 1))", "a = 1"),
        ("not not a", "a"),
        ("not not not a", ("NOT", "a")),
        ("'a or b' = s or t", ("OR", "'a or b' = s", "t")),
        ("`or` = 1 or b", ("OR", "`or` = 1", "b")),
        ("a -- or\n or b", ("OR", "a -- or", "b")),
    ],
)
def test_structure(text: str, expected: Any) -> None:
    assert read(text) == expected


@pytest.mark.parametrize("text", ["(a or b", "a or b)", "a) or (b"])
def test_text_with_unmatched_parentheses_is_left_whole(text: str) -> None:
    assert read(text) == text


@pytest.mark.parametrize("level", ["({})", "NOT ({})", "(a AND {} OR b)", "NOT (NOT {} OR a)"])
def test_conditions_nested_too_deep_are_refused(level: str) -> None:
    def nested(depth: int) -> str:
        text = "x"
        for _ in range(depth):
            text = level.format(text)
        return text

    read(nested(100))
    with pytest.raises(InvalidExpressionError, match="more than 100 deep"):
        read(nested(101))


def test_parentheses_around_values_are_not_nested_conditions() -> None:
    text = "(" * 200 + "a" + " + 1)" * 200 + " > 1"
    assert read(text) == text


def test_a_chain_within_commas_may_be_long_in_all() -> None:
    check_chains(tokenize("f(" + ", ".join(["- 1"] * 2 * MAX_CHAIN) + ")"), "")


@pytest.mark.parametrize("text", ["a" + " + 1" * (MAX_CHAIN + 1), "f(a" + "::int" * 2001 + ")"])
def test_a_chain_of_too_many_operators_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpressionError, match="chains more than"):
        check_chains(tokenize(text), text)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(a AS INT" + "[]" * 20_000 + ")",
        "a" + " AT TIME ZONE 'utc'" * 20_000,
        "@" * 20_000 + "a",
        "f(a" + " COLLATE x" * 20_000 + ")",
    ],
    ids=["type", "time zone", "sign", "collation"],
)
def test_a_chain_of_anything_that_would_overflow_the_stack_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpressionError, match="chains more than"):
        check_chains(tokenize(text), text)


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("CAST(", " AS INT)"),
        ("CASE WHEN a THEN ", " END"),
        ("CASE (", ") WHEN 1 THEN 2 END"),
        ("NOT (", ")"),
        ("INTERVAL ", ""),
        ("ARRAY[", "]"),
        ("abs(substring(", ", 1))"),
    ],
)
def test_nesting_that_a_mistake_makes_endless_to_parse_is_refused(
    opening: str, closing: str
) -> None:
    def nested(depth: int) -> str:
        return f"f({opening * depth}a b{closing * depth})"

    check_chains(tokenize(nested(MAX_REREADS)), "")
    with pytest.raises(InvalidExpressionError, match=f"more than {MAX_REREADS} deep"):
        check_chains(tokenize(nested(MAX_REREADS + 1)), "")


@pytest.mark.parametrize(
    "text",
    [
        " + ".join(["CAST(a AS INT)"] * 100),
        " AND ".join(["CASE WHEN a THEN NOT b END"] * 100),
        "f(" + ", ".join(["NOT (a)"] * 100) + ")",
        "abs(" * 40 + "a" + ")" * 40,
    ],
)
def test_keywords_beside_each_other_do_not_count_as_nested(text: str) -> None:
    check_chains(tokenize(text), text)


def test_a_type_nested_in_a_text_is_refused() -> None:
    def nested(depth: int) -> str:
        return "arrow_cast(a, '" + "List(" * depth + "Int32" + ")" * depth + "')"

    check_chains(tokenize(nested(100)), "")
    with pytest.raises(InvalidExpressionError, match="nests types"):
        check_chains(tokenize(nested(101)), "")
