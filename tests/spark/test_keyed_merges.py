"""Conditional merges into tables with a primary key, and with columns named like the aliases."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.spark import LanceTable, read

MARK = {"lance-schema:unenforced-primary-key": "true"}


@pytest.fixture(params=["n", "source", "target"])
def column(request: pytest.FixtureRequest) -> str:
    """Return the name of the column beside the key."""
    return str(request.param)


@pytest.fixture
def uri(tmp_path: Path, column: str) -> str:
    key = pa.field("key", pa.int64(), nullable=False, metadata=MARK)
    schema = pa.schema([key, (column, pa.int64())])
    lancelake.write_dataset(pa.table([[1, 2], [10, 20]], schema=schema), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


@pytest.fixture
def incoming(spark: SparkSession, column: str) -> DataFrame:
    return spark.createDataFrame([(1, 15), (2, 15), (3, 15)], f"key long, {column} long")


def rows(spark: SparkSession, uri: str) -> list[tuple[int, int]]:
    return sorted((row[0], row[1]) for row in read(spark, uri).collect())


def test_a_merge_of_a_frame(
    spark: SparkSession, uri: str, incoming: DataFrame, column: str
) -> None:
    table = LanceTable.forPath(spark, uri).alias("target")
    merge = table.merge(incoming.alias("source"), "target.key = source.key")
    merge = merge.whenMatchedUpdate(
        f"target.{column} < source.{column}", {column: f"source.{column}"}
    )
    merge.whenNotMatchedInsertAll(f"source.{column} > 14").execute()
    assert rows(spark, uri) == [(1, 15), (2, 20), (3, 15)]


def test_a_merge_of_sql(spark: SparkSession, uri: str, incoming: DataFrame, column: str) -> None:
    incoming.createOrReplaceTempView("incoming")
    spark.sql(
        f"MERGE INTO lance.`{uri}` AS target USING incoming AS source "
        "ON target.key = source.key "
        f"WHEN MATCHED AND target.{column} > source.{column} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET target.{column} = source.{column} + 1"
    )
    assert rows(spark, uri) == [(1, 16)]
