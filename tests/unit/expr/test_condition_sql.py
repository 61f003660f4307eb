"""Conditions written as SQL are read as the same conditions."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lancelake.expr.predicate import condition_sql, predicate
from lancelake.format.arrow_schema import from_arrow

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("odd name", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("f", pa.float64()),
        ("st", pa.struct([("x", pa.int32())])),
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        "i > 3",
        "`odd name` = 'it''s'",
        "b",
        "NOT b",
        "i IS NOT NULL",
        "st.x IN (1, 2, NULL)",
        "d = DATE '2020-02-29'",
        "f = CAST('NaN' AS DOUBLE)",
        "i = 1 AND (b OR `odd name` LIKE 'a%')",
        "i + 1 > 2 OR i = i",
        "true",
    ],
)
def test_text_is_read_as_the_same_condition(text: str) -> None:
    found = predicate(text, from_arrow(SCHEMA), SCHEMA, ()).condition
    sql = condition_sql(found)
    again = predicate(sql, from_arrow(SCHEMA), SCHEMA, ()).condition
    assert condition_sql(again) == sql


def test_of_a_long_list_the_first_values_are_shown() -> None:
    items = ", ".join(map(str, range(100)))
    found = predicate(f"i IN ({items})", from_arrow(SCHEMA), SCHEMA, ()).condition
    assert condition_sql(found, most_values=2) == "i IN (0, 1, ... 98 more)"
