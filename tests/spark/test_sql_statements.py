"""Statements and catalog calls of Spark on tables of ours, each of which does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import UnsupportedError
from lancelake.spark import LanceTable, error_of
from tests.support.spark_version import needs_spark

NAME = "lance.said.t"
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.said")
    yield
    spark.sql("DROP NAMESPACE lance.said CASCADE")


@pytest.fixture
def table(spark: SparkSession) -> Iterator[LanceTable]:
    """Return a table of three rows."""
    spark.sql(f"CREATE TABLE {NAME} (id bigint COMMENT 'key', v string) TBLPROPERTIES ('a' = 'b')")
    spark.sql(f"INSERT INTO {NAME} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    yield LanceTable.forName(spark, NAME)
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def rows(spark: SparkSession, name: str = NAME) -> list[tuple[Any, ...]]:
    """Return the rows of a table, sorted."""
    return sorted(tuple(row) for row in spark.table(name).collect())


def test_dynamic_overwrite_replaces_all_rows(spark: SparkSession, table: LanceTable) -> None:
    frame = spark.createDataFrame([(7, "x")], "id long, v string")
    frame.writeTo(NAME).overwritePartitions()
    assert rows(spark) == [(7, "x")]
    spark.conf.set(DYNAMIC, "dynamic")
    try:
        spark.sql(f"INSERT OVERWRITE {NAME} SELECT 8L, 'y'")
    finally:
        spark.conf.unset(DYNAMIC)
    assert rows(spark) == [(8, "y")]


@needs_spark("4.2", "CREATE TABLE LIKE for catalogs")
def test_a_table_like_another_has_its_columns(spark: SparkSession, table: LanceTable) -> None:
    spark.sql(f"CREATE TABLE lance.said.like LIKE {NAME}")
    spark.sql(f"CREATE TABLE IF NOT EXISTS lance.said.like LIKE {NAME}")
    described = spark.sql("DESCRIBE TABLE lance.said.like").collect()
    assert [tuple(row) for row in described] == [("id", "bigint", "key"), ("v", "string", None)]
    assert rows(spark, "lance.said.like") == []


def test_inserts_name_columns(spark: SparkSession, table: LanceTable) -> None:
    spark.sql(f"INSERT INTO {NAME} (v, id) VALUES ('d', 4)")
    spark.sql(f"INSERT INTO {NAME} (id) VALUES (5)")
    spark.sql(f"INSERT INTO {NAME} BY NAME SELECT 'f' v, 6L id")
    spark.sql(f"INSERT INTO {NAME} REPLACE WHERE id < 3 SELECT 1L, 'A'")
    assert rows(spark) == [(1, "A"), (3, "c"), (4, "d"), (5, None), (6, "f")]


def test_another_format_is_refused(spark: SparkSession) -> None:
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.sql("CREATE TABLE lance.said.other (id int) USING csv")
    assert isinstance(error_of(caught.value), UnsupportedError)


def test_namespaces_are_altered(spark: SparkSession) -> None:
    spark.sql("ALTER NAMESPACE lance.said SET PROPERTIES ('x' = 'y')")
    spark.sql("COMMENT ON NAMESPACE lance.said IS 'words'")
    properties = {r[0]: r[1] for r in spark.sql("DESCRIBE NAMESPACE EXTENDED lance.said").collect()}
    assert properties["Comment"] == "words"
    assert "(x,y)" in properties["Properties"]
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.said")


def test_a_table_is_described_by_statements_that_make_it(
    spark: SparkSession, table: LanceTable
) -> None:
    made = spark.sql(f"SHOW CREATE TABLE {NAME}").collect()[0][0]
    assert "id BIGINT COMMENT 'key'" in made
    assert "USING lance" in made
    assert "'a' = 'b'" in made
    spark.sql(f"REFRESH TABLE {NAME}")
    assert [t.name for t in spark.catalog.listTables("lance.said") if t.name == "t"] == ["t"]
    assert spark.catalog.tableExists(NAME)


def test_a_view_and_a_cache_see_new_rows(spark: SparkSession, table: LanceTable) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW large AS SELECT * FROM {NAME} WHERE id > 2")
    spark.sql(f"CACHE TABLE {NAME}")
    spark.sql(f"INSERT INTO {NAME} VALUES (9, 'z')")
    assert rows(spark, "large") == [(3, "c"), (9, "z")]
    assert spark.table(NAME).count() == 4
    spark.sql(f"UNCACHE TABLE {NAME}")


def test_a_table_is_emptied_and_dropped(
    spark: SparkSession, table: LanceTable, warehouse: Path
) -> None:
    spark.sql(f"TRUNCATE TABLE {NAME}")
    assert rows(spark) == []
    spark.sql(f"DROP TABLE {NAME} PURGE")
    assert not (warehouse / "said" / "t.lance").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {} SET v = 'q' WHERE id = 99",
        "UPDATE {} SET v = 'q' WHERE upper(v) = 'NONE'",
        "DELETE FROM {} WHERE id = 99",
        "DELETE FROM {} WHERE upper(v) = 'NONE'",
        "MERGE INTO {} t USING (SELECT 99L id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO {} SELECT 1L, 'x' WHERE false",
        "INSERT INTO {} REPLACE WHERE id = 99 SELECT 99L, 'x' WHERE false",
    ],
)
def test_a_command_that_changes_no_row_commits_no_version(
    spark: SparkSession, table: LanceTable, statement: str
) -> None:
    before = table.version()
    spark.sql(statement.format(NAME))
    assert table.version() == before


def test_changes_by_program_that_match_nothing_make_no_version(table: LanceTable) -> None:
    before = table.version()
    assert table.update("id = 99", {"v": "'q'"}).collect()[0][0] == 0
    assert table.delete("id = 99").collect()[0][0] == 0
    assert table.version() == before


def test_streams_name_tables(
    spark: SparkSession, table: LanceTable, tmp_path: Path, warehouse: Path
) -> None:
    query = (
        spark.readStream.table(NAME)
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("lance.said.copied")
    )
    query.awaitTermination()
    assert rows(spark, "lance.said.copied") == rows(spark)
    lancelake.LanceDataset(warehouse / "said" / "copied.lance").validate()
