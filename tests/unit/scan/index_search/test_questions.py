"""Conditions become questions to indices; parts that cannot help are not asked."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.expr.condition import Column, Leaf
from lancelake.expr.predicate import condition_sql, sql_condition
from lancelake.format.arrow_schema import from_arrow
from lancelake.scan.index_search.sources import UNASKED, asked, column_of_leaf, questions_of

SCHEMA = pa.schema([("i", pa.int64()), ("j", pa.int64()), ("other", pa.int64())])


def column_of(leaf: Leaf) -> Column | None:
    """Columns `i` and `j` are indexed."""
    column = column_of_leaf(leaf)
    return column if column is not None and column.path[0] in ("i", "j") else None


def questions(text: str) -> list[str]:
    condition = sql_condition(text, from_arrow(SCHEMA), SCHEMA)
    found = questions_of(condition, column_of)
    assert (found is UNASKED) == (not asked(found))
    return sorted(condition_sql(question.condition) for question in asked(found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i = 1", ["i = 1"]),
        ("other = 1", []),
        ("i = 1 AND other = 2", ["i = 1"]),
        ("i = 1 OR other = 2", []),
        ("i = 1 OR j = 2", ["i = 1", "j = 2"]),
        ("NOT (i = 1 OR other = 2)", ["i = 1"]),
        ("NOT (i = 1 AND other = 2)", []),
        ("NOT (NOT (i = 1 AND other = 2))", ["i = 1"]),
        ("j = 3 AND (i = 1 OR other = 2)", ["j = 3"]),
        ("i > 1 AND j = 2 AND i < 5", ["(i > 1) AND (i < 5)", "j = 2"]),
        ("i > 1 OR j = 2 OR i < 5", ["i < 5", "i > 1", "j = 2"]),
        ("i > 1 AND i IN (2, 3)", ["i > 1", "i IN (2, 3)"]),
        ("i = j", []),
    ],
)
def test_only_parts_that_bound_the_rows_are_asked(text: str, expected: list[str]) -> None:
    assert questions(text) == expected
