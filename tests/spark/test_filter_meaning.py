"""Filters of reads and changes: on live rows only, and of any length and depth."""

from __future__ import annotations

import functools
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.spark import LanceTable, read

NAN = float("nan")


@pytest.fixture
def without_zero(tmp_path: Path) -> str:
    """Return a table of numbers and texts whose zero and whose word are deleted."""
    rows = pa.table({"x": [0, 1, 2, 5], "t": ["secret", "1", "2", "3"]})
    table = lancelake.write_dataset(rows, tmp_path / "t.lance")
    table.delete("x = 0")
    return str(tmp_path / "t.lance")


@pytest.mark.parametrize("filter", ["10 / x > 1", "CAST(t AS INT) > 0", "x != 0 AND 10 % x >= 0"])
def test_an_expression_does_not_see_deleted_rows(
    spark: SparkSession, without_zero: str, filter: str
) -> None:
    assert read(spark, without_zero).where(filter).count() == 3
    spark.sql(f"UPDATE lance.`{without_zero}` SET t = '7' WHERE {filter}")
    assert [row.t for row in read(spark, without_zero).collect()] == ["7", "7", "7"]
    LanceTable.forPath(spark, without_zero).delete(filter)
    assert read(spark, without_zero).count() == 0


@pytest.mark.parametrize("name", ["f", "h"])
@pytest.mark.parametrize("others", ["5D", "5D, 6D, 7D", ", ".join(f"{n}D" for n in range(5, 20))])
def test_a_list_with_zero_has_both_zeros(
    spark: SparkSession, tmp_path: Path, name: str, others: str
) -> None:
    numbers = [0.0, -0.0, NAN, None, 3.0]
    columns = {"f": numbers, "h": pa.array(numbers, pa.float32()), "id": range(5)}
    lancelake.write_dataset(pa.table(columns), tmp_path / "t.lance")
    frame = read(spark, str(tmp_path / "t.lance")).where(f"{name} IN (0D, {others})")
    assert sorted(row.id for row in frame.select("id").collect()) == [0, 1]


@pytest.fixture
def numbers(tmp_path: Path) -> str:
    """Return a table of the numbers from 0 to 5."""
    lancelake.write_dataset(pa.table({"id": range(6)}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def nested(depth: int) -> Column:
    """Return `id > 1 AND (id = 0 OR (id > 1 AND ... id = 1))`, which is `id > 1`."""

    def level(inner: Column, number: int) -> Column:
        return (f.col("id") == 0) | inner if number % 2 else (f.col("id") > 1) & inner

    return functools.reduce(level, range(depth), f.col("id") == 3)


@pytest.mark.parametrize("depth", [21, 251])
def test_conditions_nest_as_deep_as_spark_allows(
    spark: SparkSession, numbers: str, depth: int
) -> None:
    condition = nested(depth)
    assert [row.id for row in read(spark, numbers).where(condition).collect()] == [3]
    table = LanceTable.forPath(spark, numbers)
    table.update(condition, {"id": "id + 10"})
    assert sorted(row.id for row in read(spark, numbers).collect()) == [0, 1, 2, 4, 5, 13]
    table.delete(condition | (f.col("id") == 13))
    assert sorted(row.id for row in read(spark, numbers).collect()) == [0, 1, 2, 4, 5]


@pytest.mark.parametrize("part", ["id = {}", "id + 0 = {}", "id > 3 AND id < {}"])
def test_a_chain_of_many_conditions_is_evaluated(
    spark: SparkSession, numbers: str, part: str
) -> None:
    chain = " OR ".join(f"({part.format(n)})" for n in range(4, 1004))
    assert sorted(row.id for row in read(spark, numbers).where(chain).collect()) == [4, 5]
    LanceTable.forPath(spark, numbers).delete(chain)
    assert read(spark, numbers).count() == 4


def test_a_chain_that_spark_nests_is_pushed_down(spark: SparkSession, numbers: str) -> None:
    parts = [f.col("id") == n for n in range(120)]
    chain = functools.reduce(lambda left, right: left | right, parts)
    frame = read(spark, numbers).where(chain & (f.col("id") > 4))
    plan = str(frame._jdf.queryExecution().executedPlan())
    assert "Filter" not in plan.partition("BatchScan")[0]
    assert [row.id for row in frame.collect()] == [5]
