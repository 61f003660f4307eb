"""Random queries on a Lance table and on Parquet, and random statements against a model.

`LANCELAKE_RANDOM_SPARK` is the number of queries, and `LANCELAKE_RANDOM_SEED` where they start.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from tests.support.spark_compare import bag
from tests.support.spark_random import RandomSql, random_change
from tests.support.spark_rows import SCHEMA, rows

QUERIES = int(os.environ.get("LANCELAKE_RANDOM_SPARK", "40"))
STATEMENTS = max(1, QUERIES // 4)
SEED = int(os.environ.get("LANCELAKE_RANDOM_SEED", "1"))
GROUP = 20
"""Queries in one test, so that a failure names a few of them."""

COLUMNS = [name for name in SCHEMA.names if name not in ("m", "ps", "xs")]
"""Columns that queries use."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same rows as Lance and as Parquet tables."""
    place = tmp_path_factory.mktemp("random")
    for name, count in {"t": 400, "u": 60}.items():
        table = rows(count).select(COLUMNS)
        lancelake.write_dataset(table, place / f"{name}.lance", max_rows_per_file=150)
        pq.write_table(table, place / f"{name}.parquet")
    return place


@pytest.fixture
def use(spark: SparkSession, folder: Path) -> Iterator[Callable[[str], None]]:
    """Return what lets queries read the tables in a format."""

    def switch(format: str) -> None:
        for name in ("t", "u"):
            frame = spark.read.format(format).load(str(folder / f"{name}.{format}"))
            frame.createOrReplaceTempView(name)

    yield switch
    for name in ("t", "u", "m"):
        spark.catalog.dropTempView(name)


def answer(spark: SparkSession, query: str) -> Any:
    """Return the rows of a query, or that it failed."""
    try:
        return bag(spark.sql(query))
    except PySparkException as error:
        return f"failed: {error.getCondition()}"


@pytest.mark.parametrize("start", range(0, QUERIES, GROUP))
def test_random_queries_answer_as_on_parquet(
    spark: SparkSession, use: Callable[[str], None], start: int
) -> None:
    queries = [
        RandomSql(random.Random(f"{SEED} {number}")).query()
        for number in range(start, min(start + GROUP, QUERIES))
    ]
    use("parquet")
    expected = [answer(spark, query) for query in queries]
    use("lance")
    values = [answer(spark, query) for query in queries]
    wrong = [each for each in zip(queries, expected, values, strict=True) if each[1] != each[2]]
    assert not wrong


def test_random_statements_leave_the_rows_of_a_model(
    spark: SparkSession, use: Callable[[str], None], tmp_path: Path
) -> None:
    use("parquet")
    spark.table("t").createOrReplaceTempView("m")
    spark.table("t").writeTo("lance.random").create()
    try:
        for number in range(STATEMENTS):
            sql = RandomSql(random.Random(f"{SEED} change {number}"))
            change = random_change(sql, "lance.random", COLUMNS)
            place = str(tmp_path / str(number))
            spark.sql(change.left).write.parquet(place)
            spark.sql(change.statement)
            spark.read.parquet(place).createOrReplaceTempView("m")
            assert bag(spark.table("lance.random")) == bag(spark.table("m")), change.statement
            if spark.table("m").count() < GROUP:
                spark.sql("INSERT OVERWRITE lance.random SELECT * FROM t")
                spark.table("t").createOrReplaceTempView("m")
    finally:
        spark.sql("DROP TABLE lance.random")
