"""Arguments of maintenance jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lancelake.errors import InvalidRequestError
from lancelake.spark.sql.maintenance_methods import parse_age, parse_orderings


def test_an_age_has_units() -> None:
    assert parse_age("7days 12h") == timedelta(days=7, hours=12)


@pytest.mark.parametrize("text", ["yesterday", "7", "7 moons", "9999999999years"])
def test_text_that_is_not_an_age_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=text):
        parse_age(text)


def test_sort_columns_may_be_quoted() -> None:
    found = parse_orderings("day, `a, b` DESC, s.`c d` asc, `desc`")
    assert [(each.column, each.ascending) for each in found] == [
        ("day", True),
        ("`a, b`", False),
        ("s.`c d`", True),
        ("`desc`", True),
    ]


@pytest.mark.parametrize("text", ["a b", "a b DESC", "a DOWN"])
def test_other_words_after_a_sort_column_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a sort column"):
        parse_orderings(text)
