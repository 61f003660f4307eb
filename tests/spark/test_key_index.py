"""Merges of Spark keep the index of the primary key up to date."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from lancelake.spark import LanceTable

NAME = "lance.keyed.t"
ROWS = 1000


@pytest.fixture
def table(spark: SparkSession) -> Iterator[LanceTable]:
    """Return a table with a key index."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.keyed")
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT PRIMARY KEY, v STRING)")
    spark.range(0, ROWS, 1, 2).selectExpr("id", "'old' v").writeTo(NAME).append()
    spark.sql("CALL lance.system.create_index('keyed.t', 'id')").collect()
    spark.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('lancelake.key_index' = 'true')")
    yield LanceTable.forName(spark, NAME)
    spark.sql(f"DROP TABLE {NAME}")


def changes(spark: SparkSession, value: str) -> DataFrame:
    """Return rows of which ten have keys of the table and ten are new."""
    return spark.range(ROWS - 10, ROWS + 10).selectExpr("id", f"'{value}' v")


def ensure_indexed(spark: SparkSession, value: str) -> None:
    segments = spark.sql(f"SELECT rows_indexed FROM {NAME}.indices").collect()
    assert sorted(row.rows_indexed for row in segments) == [20, ROWS - 10]
    frame = spark.table(NAME).where(f"id IN ({ROWS - 11}, {ROWS - 10}, {ROWS + 9})")
    assert {row.id: row.v for row in frame.collect()} == {
        ROWS - 11: "old",
        ROWS - 10: value,
        ROWS + 9: value,
    }
    metrics = frame._jdf.queryExecution().executedPlan().collectLeaves().head().metrics()
    read, by_index = (
        int(metrics.apply(name).value()) for name in ("numFragments", "numFragmentsByIndex")
    )
    assert by_index == read


def test_sql_merge_adds_its_rows_to_the_key_index(spark: SparkSession, table: LanceTable) -> None:
    changes(spark, "sql").createOrReplaceTempView("key_changes")
    spark.sql(
        f"MERGE INTO {NAME} t USING key_changes c ON t.id = c.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    ensure_indexed(spark, "sql")


def test_merge_of_a_lance_table_adds_its_rows_to_the_key_index(
    spark: SparkSession, table: LanceTable
) -> None:
    merge = table.alias("t").merge(changes(spark, "method").alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    ensure_indexed(spark, "method")
