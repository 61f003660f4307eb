"""DELETE, UPDATE and MERGE change tables, and refuse views and queries over them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark import error_of

TABLE = "lance.goal"
QUERIES = {
    "filter": f"SELECT * FROM {TABLE} WHERE id >= 3",
    "every row": f"TABLE {TABLE}",
    "limit": f"SELECT * FROM {TABLE} LIMIT 2",
    "distinct": f"SELECT DISTINCT * FROM {TABLE}",
    "count": f"SELECT count(*) AS id, 'a' AS v FROM {TABLE}",
    "union": f"SELECT * FROM {TABLE} UNION ALL SELECT * FROM {TABLE}",
    "join": f"SELECT a.* FROM {TABLE} a JOIN {TABLE} b ON a.id = b.id",
    "computed": f"SELECT id, upper(v) AS v FROM {TABLE}",
}
COMMANDS = {
    "delete": "DELETE FROM {}",
    "delete where": "DELETE FROM {} WHERE id = 1",
    "update": "UPDATE {} SET v = 'x'",
    "merge": "MERGE INTO {} t USING (SELECT 1L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "merge all": "MERGE INTO {} t USING (SELECT 9L AS id, 'n' AS v) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT *",
}
ROWS = [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table of four rows."""
    rows = spark.createDataFrame(ROWS, "id long, v string").coalesce(1)
    rows.writeTo(TABLE).create()
    yield TABLE
    spark.catalog.dropTempView("shown")
    spark.sql(f"DROP TABLE {TABLE}")


def ensure_refused(spark: SparkSession, warehouse: Path, statement: str) -> None:
    """Run a statement that must end with our error, in one line, and change nothing."""
    path = warehouse / "goal.lance"
    version = lancelake.LanceDataset(path).version
    with pytest.raises(PySparkException) as caught:
        spark.sql(statement)
    error = error_of(caught.value)
    assert isinstance(error, InvalidRequestError)
    assert "\n" not in str(error)
    assert "not a table" in str(error)
    assert lancelake.LanceDataset(path).version == version


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_temporary_view_is_refused(
    spark: SparkSession, table: str, warehouse: Path, query: str, command: str
) -> None:
    del table
    spark.sql(f"CREATE TEMP VIEW shown AS {QUERIES[query]}")
    ensure_refused(spark, warehouse, COMMANDS[command].format("shown"))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", ["true", "id > 2"])
def test_a_view_of_a_frame_is_refused(
    spark: SparkSession, table: str, warehouse: Path, where: str, command: str
) -> None:
    spark.table(table).where(where).createTempView("shown")
    ensure_refused(spark, warehouse, COMMANDS[command].format("shown"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_view_of_a_frame_read_by_path_is_refused(
    spark: SparkSession, table: str, warehouse: Path, command: str
) -> None:
    del table
    frame = spark.read.format("lance").load(str(warehouse / "goal.lance"))
    frame.select("id", f.upper("v").alias("v")).createTempView("shown")
    ensure_refused(spark, warehouse, COMMANDS[command].format("shown"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_cached_query_is_refused(
    spark: SparkSession, table: str, warehouse: Path, command: str
) -> None:
    spark.sql(f"CACHE TABLE shown AS SELECT * FROM {table} WHERE id > 1")
    ensure_refused(spark, warehouse, COMMANDS[command].format("shown"))
    spark.sql("UNCACHE TABLE shown")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_view_of_the_session_catalog_is_refused(
    spark: SparkSession, table: str, warehouse: Path, command: str
) -> None:
    name = "spark_catalog.default.kept_view"
    spark.sql(f"CREATE VIEW {name} AS SELECT * FROM {table} WHERE id > 1")
    try:
        ensure_refused(spark, warehouse, COMMANDS[command].format(name))
    finally:
        spark.sql(f"DROP VIEW {name}")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_common_table_expression_is_refused(
    spark: SparkSession, table: str, warehouse: Path, command: str
) -> None:
    query = f"WITH c AS (SELECT * FROM {table} WHERE id > 2) "
    ensure_refused(spark, warehouse, query + COMMANDS[command].format("c"))


def test_a_merge_of_a_frame_into_a_view_is_refused(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(f"CREATE TEMP VIEW shown AS SELECT * FROM {table} WHERE id > 2")
    source = spark.createDataFrame([(1,)], "id long").alias("s")
    with pytest.raises(PySparkException) as caught:
        source.mergeInto("shown", f.expr("s.id = shown.id")).whenMatched().delete().merge()
    assert isinstance(error_of(caught.value), InvalidRequestError)
    assert lancelake.LanceDataset(warehouse / "goal.lance").version == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} AS t WHERE t.id < 4",
        "WITH k AS (SELECT id FROM range(4)) DELETE FROM {} WHERE id IN (SELECT id FROM k)",
        "WITH k AS (SELECT id FROM range(4)) MERGE INTO {} AS t USING k ON t.id = k.id "
        "WHEN MATCHED THEN DELETE",
    ],
)
def test_an_alias_and_queries_beside_the_table_are_taken(
    spark: SparkSession, table: str, statement: str
) -> None:
    spark.sql(statement.format(table))
    assert [tuple(row) for row in spark.table(table).collect()] == [(4, "d")]


def test_a_cached_table_is_changed(spark: SparkSession, table: str) -> None:
    spark.sql(f"CACHE TABLE {table}")
    spark.sql(f"UPDATE {table} SET v = 'x' WHERE id = 1")
    assert spark.table(table).where("v = 'x'").count() == 1
    spark.sql(f"UNCACHE TABLE {table}")
