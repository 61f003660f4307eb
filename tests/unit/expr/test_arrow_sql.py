"""Expressions of pyarrow as SQL with the same meaning."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelake.errors import UnsupportedError
from lancelake.expr.arrow_sql import arrow_to_sql


@pytest.mark.parametrize(
    ("expression", "sql"),
    [
        (pc.field("a") > 1, "(`a` > 1)"),
        (pc.field("st", "x") == "it's", "(`st`.`x` = 'it''s')"),
        (pc.field("od`d") == 1, "(`od``d` = 1)"),
        (~pc.field("a").isin([1, None]), "(NOT (`a` IN (1, NULL)))"),
        ((pc.field("a") == 1) & pc.field("b"), "((`a` = 1) AND `b`)"),
        (pc.field("a").is_null(), "(`a` IS NULL)"),
        (pc.field("a").is_null(nan_is_null=True), "((`a` IS NULL) OR isnan(`a`))"),
        (pc.field("d") == dt.date(1970, 1, 3), "(`d` = arrow_cast(2, 'Date32'))"),
        (pc.field("a").cast(pa.int8()) == 1, "(arrow_cast(`a`, 'Int8') = 1)"),
        (pc.match_like(pc.field("s"), "a%", ignore_case=True), "(`s` ILIKE 'a%')"),
        (pc.match_substring(pc.field("s"), "a"), "contains(`s`, 'a')"),
        (pc.field("a") - 1 < pc.field("b") * 2, "((`a` - 1) < (`b` * 2))"),
        (pc.scalar(True), "true"),
    ],
    ids=str,
)
def test_sql_of_an_expression(expression: pc.Expression, sql: str) -> None:
    assert arrow_to_sql(expression) == sql


@pytest.mark.parametrize(
    "expression",
    [pc.field(0) == 1, pc.utf8_reverse(pc.field("s")) == "a", pc.field("l") == pa.scalar([1])],
    ids=["position", "function", "constant"],
)
def test_what_sql_cannot_state_is_refused(expression: pc.Expression) -> None:
    with pytest.raises(UnsupportedError, match="filter"):
        arrow_to_sql(expression)
