"""Conditions in our SQL mean what they mean to Spark, or are not translated."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from lancelake.spark.predicates import Column, Condition, Constant, Node, Value, literal, to_sql

DAY = pa.date32()
TIME = pa.timestamp("us", "UTC")


def column(dtype: pa.DataType, *path: str) -> Column:
    return Column(path=path or ("c",), dtype=dtype)


def compared(name: str, dtype: pa.DataType, value: Value) -> str | None:
    return to_sql(Condition(name=name, operands=(column(dtype), Constant(value=value))))


@pytest.mark.parametrize(
    ("dtype", "value", "sql"),
    [
        (pa.int32(), 7, "(`c` = 7)"),
        (pa.string(), "it's", "(`c` = 'it''s')"),
        (pa.binary(), b"\xff", "(`c` = X'ff')"),
        (pa.bool_(), True, "(`c` = true)"),
        (DAY, 19000, "(`c` = arrow_cast(19000, 'Date32'))"),
        (TIME, 5, "(`c` = arrow_cast(5, 'Timestamp(Microsecond, Some(\"UTC\"))'))"),
        (pa.decimal128(5, 2), Decimal("1.5"), "(`c` = CAST('1.5' AS DECIMAL(5,2)))"),
        (pa.float64(), 1.5, "(`c` = CAST('1.5' AS DOUBLE))"),
    ],
)
def test_constants_have_the_type_of_the_column(dtype: pa.DataType, value: Value, sql: str) -> None:
    assert compared("=", dtype, value) == sql


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pa.float64(), math.nan),
        (pa.float64(), math.inf),
        (pa.timestamp("ns", "UTC"), 5),
        (pa.decimal128(5, 2), Decimal("1.555")),
        (DAY, 10_000_000),
        (pa.float16(), 1.5),
        (pa.list_(pa.int32()), 1),
        (pa.string(), 5),
        (pa.string(), "a\0b"),
    ],
)
def test_doubtful_comparisons_are_not_translated(dtype: pa.DataType, value: Value) -> None:
    assert compared("=", dtype, value) is None


def test_both_zeros_are_equal() -> None:
    zeros = "(`c` = CAST('0.0' AS DOUBLE) OR `c` = CAST('-0.0' AS DOUBLE))"
    assert compared("=", pa.float64(), -0.0) == zeros


def test_a_constant_may_stand_first() -> None:
    condition = Condition(name="<", operands=(Constant(value=7), column(pa.int32())))
    assert to_sql(condition) == "(`c` > 7)"


def test_one_unknown_part_makes_the_whole_unknown() -> None:
    known = Condition(name="IS_NULL", operands=(column(pa.int32()),))
    unknown = Condition(name="RLIKE", operands=(column(pa.string()), Constant(value="a")))
    assert to_sql(Condition(name="OR", operands=(known, unknown))) is None


def test_members_are_quoted_one_by_one() -> None:
    node: Node = Condition(name="IS_NOT_NULL", operands=(column(pa.int32(), "a b", "c"),))
    assert to_sql(node) == "(`a b`.`c` IS NOT NULL)"


def test_names_with_quotes_are_left_to_spark() -> None:
    assert to_sql(Condition(name="IS_NULL", operands=(column(pa.int32(), "a`b"),))) is None


def test_memberships_of_floats_are_left_to_spark() -> None:
    operands = (column(pa.float64()), Constant(value=1.0))
    assert to_sql(Condition(name="IN", operands=operands)) is None


def test_null_has_no_type() -> None:
    assert literal(None, pa.int32()) == "NULL"
