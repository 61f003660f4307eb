"""Spark's predicates become conditions with the same meaning, or stay in Spark."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from lancelake.expr.condition import Column, Condition
from lancelake.expr.evaluate import evaluate
from lancelake.expr.predicate import condition_sql
from lancelake.spark.jvm.spark_conditions import Operand, SparkLiteral, Value, spark_condition

DAY = pa.date32()
TIME = pa.timestamp("us", "UTC")


def column(dtype: pa.DataType, *path: str) -> Column:
    return Column(path=path or ("c",), dtype=dtype)


def compared(name: str, dtype: pa.DataType, value: Value) -> Condition | None:
    return spark_condition(name, [column(dtype), SparkLiteral(value=value)])


def truth(condition: Condition | None, **columns: pa.Array) -> list[bool | None]:
    assert condition is not None
    found: list[bool | None] = evaluate(condition, pa.RecordBatch.from_pydict(columns)).to_pylist()
    return found


@pytest.mark.parametrize(
    ("dtype", "value", "sql"),
    [
        (pa.int32(), 7, "c = 7"),
        (pa.string(), "it's", "c = 'it''s'"),
        (pa.binary(), b"\xff", "c = X'ff'"),
        (pa.bool_(), True, "c = true"),
        (DAY, 19000, "c = DATE '2022-01-08'"),
        (TIME, 5, "c = TIMESTAMP '1970-01-01 00:00:00.000005Z'"),
        (pa.decimal128(5, 2), Decimal("1.5"), "c = 1.50"),
        (pa.float64(), 1.5, "c = 1.5"),
    ],
)
def test_constants_have_the_type_of_the_column(dtype: pa.DataType, value: Value, sql: str) -> None:
    found = compared("=", dtype, value)
    assert found is not None
    assert condition_sql(found) == sql


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pa.timestamp("ns", "UTC"), 5),
        (pa.decimal128(5, 2), Decimal("1.555")),
        (pa.float16(), 1.5),
        (pa.list_(pa.int32()), 1),
        (pa.string(), 5),
        (pa.int8(), 300),
        (pa.uint64(), -1),
    ],
)
def test_comparisons_that_may_differ_stay_in_spark(dtype: pa.DataType, value: Value) -> None:
    assert compared("=", dtype, value) is None


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("=", 0.0, [True, True, False, False, None]),
        ("=", math.nan, [False, False, False, True, None]),
        (">", 0.0, [False, False, True, True, None]),
        ("<=", -0.0, [True, True, False, False, None]),
        ("<=>", -0.0, [True, True, False, False, False]),
        ("<", 2.0, [True, True, True, False, None]),
        ("<=", math.nan, [True, True, True, True, None]),
        (">", math.nan, [False, False, False, False, None]),
        ("<>", 1.0, [True, True, False, True, None]),
    ],
)
def test_floating_point_numbers_compare_as_in_spark(
    name: str, value: float, expected: list[bool | None]
) -> None:
    for nan in (math.nan, -math.nan):
        values = pa.array([0.0, -0.0, 1.0, nan, None])
        assert truth(compared(name, pa.float64(), value), c=values) == expected


def test_members_of_floating_point_numbers_are_found_as_in_spark() -> None:
    operands = [column(pa.float64()), SparkLiteral(value=0.0), SparkLiteral(value=math.nan)]
    for nan in (math.nan, -math.nan):
        values = pa.array([0.0, -0.0, 1.0, nan, None])
        assert truth(spark_condition("IN", operands), c=values) == [True, True, False, True, None]


def test_null_safe_comparison_is_never_null() -> None:
    values = pa.array([1, 2, None])
    assert truth(compared("<=>", pa.int64(), 1), c=values) == [True, False, False]
    assert truth(compared("<=>", pa.int64(), None), c=values) == [False, False, True]


def test_null_safe_comparison_of_columns_is_never_null() -> None:
    found = spark_condition("<=>", [column(pa.int64(), "a"), column(pa.int64(), "b")])
    a, b = pa.array([1, 1, None, None]), pa.array([1, 2, 1, None])
    assert truth(found, a=a, b=b) == [True, False, False, True]


def test_a_comparison_with_null_is_null() -> None:
    assert truth(compared("=", pa.int64(), None), c=pa.array([1, None])) == [None, None]


def test_a_constant_may_come_first() -> None:
    found = spark_condition("<", [SparkLiteral(value=7), column(pa.int32())])
    assert found is not None
    assert condition_sql(found) == "c > 7"


def test_a_predicate_of_an_unknown_name_stays_in_spark() -> None:
    operands: list[Operand] = [column(pa.string()), SparkLiteral(value="a")]
    assert spark_condition("RLIKE", operands) is None
