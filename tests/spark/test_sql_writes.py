"""Rows written by SQL and by Spark's writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.errors import AlreadyExistsError, InvalidRequestError, UnsupportedError
from lancelake.spark import error_of
from tests.support.lance_errors import refused
from tests.support.spark_version import needs_spark


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.w")
    yield
    spark.sql("DROP NAMESPACE lance.w CASCADE")


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table with the ids 0 to 3."""
    spark.sql("CREATE TABLE lance.w.t AS SELECT id, concat('n', id) AS name FROM range(4)")
    yield "lance.w.t"
    spark.sql("DROP TABLE lance.w.t")


def rows(warehouse: Path, name: str = "t") -> list[tuple[Any, ...]]:
    """Return the rows of a table in order, read without Spark, after checking the table."""
    dataset = lancelake.LanceDataset(warehouse / "w" / f"{name}.lance")
    dataset.validate()
    return sorted((tuple(row.values()) for row in dataset.to_table().to_pylist()), key=str)


def failure(action: Callable[[], object]) -> Exception | None:
    """Return the error of ours inside what an action raises."""
    with pytest.raises(PySparkException) as caught:
        action()
    return error_of(caught.value)


def test_rows_are_inserted_by_position_and_by_name(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(f"INSERT INTO {table} VALUES (10, 'ten')")
    spark.sql(f"INSERT INTO {table} (name) VALUES ('only')")
    result = lancelake.LanceDataset(warehouse / "w/t.lance").to_table().to_pylist()
    assert {"id": 10, "name": "ten"} in result
    assert {"id": None, "name": "only"} in result


def test_every_type_goes_in_and_comes_out(spark: SparkSession) -> None:
    columns = (
        "1Y a, 2S b, 3 c, 4L d, 1.5F e, 2.5D f, 1.25BD g, true h, 'x' i, X'00FF' j, "
        "date'2024-02-29' k, timestamp'2024-02-29 01:02:03.000004' l, "
        "timestamp_ntz'2024-02-29 01:02:03' m, array(1, null) n, map('k', array(1)) o, "
        "named_struct('p', 1, 'q', named_struct('r', timestamp'2000-01-01 00:00:00')) s"
    )
    expected = spark.sql(f"SELECT {columns}")
    spark.sql(f"CREATE TABLE lance.w.types AS SELECT {columns}")
    spark.sql(f"INSERT INTO lance.w.types SELECT {columns}")
    spark.sql("INSERT INTO lance.w.types (a) VALUES (7)")
    frame = spark.table("lance.w.types")
    assert frame.where("b IS NOT NULL").collect() == expected.collect() * 2
    nulls = frame.where("b IS NULL").collect()
    assert [value for value in nulls[0] if value is not None] == [7]


def test_insert_overwrite_leaves_only_the_new_rows(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    spark.sql(f"INSERT OVERWRITE {table} SELECT 9L, 'nine'")
    assert rows(warehouse) == [(9, "nine")]
    assert spark.sql(f"SELECT count(*) FROM {table} VERSION AS OF 1").collect()[0][0] == 4


def test_rows_that_a_condition_names_are_replaced(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    new = spark.sql("SELECT 2L AS id, 'two' AS name")
    new.writeTo(table).overwrite(f.col("id") >= 2)
    assert rows(warehouse) == [(0, "n0"), (1, "n1"), (2, "two")]


def test_a_condition_that_only_spark_evaluates_selects_rows(
    spark: SparkSession, table: str
) -> None:
    kept = [row.id for row in spark.table(table).where("NOT sqrt(id) > 1").collect()]
    new = spark.sql("SELECT 2L AS id, 'two' AS name")
    new.writeTo(table).overwrite(f.expr("sqrt(id) > 1"))
    assert sorted(row.id for row in spark.table(table).collect()) == sorted([*kept, 2])


REPLACEMENTS: dict[str, Callable[[SparkSession, str, str], object]] = {
    "writeTo": lambda spark, table, condition: (
        spark.sql("SELECT 3L AS id, 'three' AS name").writeTo(table).overwrite(f.expr(condition))
    ),
    "SQL": lambda spark, table, condition: spark.sql(
        f"INSERT INTO {table} REPLACE WHERE {condition} SELECT 3L, 'three'"
    ),
    "option": lambda spark, table, condition: (
        spark.sql("SELECT 3L AS id, 'three' AS name")
        .write.mode("overwrite")
        .option("replaceWhere", condition)
        .saveAsTable(table)
    ),
}


@pytest.mark.parametrize("condition", ["id = 2", "sqrt(id) = 1", "nullif(id, 3) > 0"])
@pytest.mark.parametrize("way", REPLACEMENTS)
def test_rows_outside_of_the_condition_do_not_replace_rows(
    spark: SparkSession, table: str, warehouse: Path, way: str, condition: str
) -> None:
    with pytest.raises(Exception, match="rows that do not match the condition of the overwrite"):
        REPLACEMENTS[way](spark, table, condition)
    assert [row[0] for row in rows(warehouse)] == [0, 1, 2, 3]


def test_a_replaced_table_keeps_its_history(spark: SparkSession, table: str) -> None:
    spark.range(3).writeTo(table).tableProperty("team", "x").createOrReplace()
    assert spark.table(table).columns == ["id"]
    versions = spark.sql(f"SELECT version, rows FROM {table}.versions").collect()
    assert [tuple(row) for row in versions] == [(1, 4), (2, 3)]
    properties = spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
    assert {row.key: row.value for row in properties}["team"] == "x"


def test_a_query_that_fails_leaves_no_table(spark: SparkSession, warehouse: Path) -> None:
    with pytest.raises(PySparkException):
        spark.sql("CREATE TABLE lance.w.never AS SELECT raise_error('no') AS x")
    assert not spark.catalog.tableExists("lance.w.never")


def test_a_replacement_that_fails_leaves_the_table(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    with pytest.raises(PySparkException):
        spark.sql(f"CREATE OR REPLACE TABLE {table} AS SELECT raise_error('no') AS x")
    assert len(rows(warehouse)) == 4


def test_save_as_table_has_every_mode(spark: SparkSession, warehouse: Path) -> None:
    frame = spark.range(2)
    frame.write.saveAsTable("lance.w.modes")
    frame.write.mode("append").saveAsTable("lance.w.modes")
    frame.write.insertInto("lance.w.modes")
    frame.write.mode("ignore").saveAsTable("lance.w.modes")
    assert len(rows(warehouse, "modes")) == 6
    frame.write.mode("overwrite").saveAsTable("lance.w.modes")
    assert len(rows(warehouse, "modes")) == 2
    with pytest.raises(AnalysisException, match="already exists"):
        frame.write.saveAsTable("lance.w.modes")


def test_a_write_with_a_number_is_committed_once(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    new = spark.sql("SELECT 7L AS id, 'seven' AS name")
    for _ in range(2):
        new.writeTo(table).option("txnAppId", "job").option("txnVersion", "1").append()
    assert rows(warehouse)[-1] == (7, "seven")
    assert len(rows(warehouse)) == 5


def test_new_columns_come_in_when_they_may(
    spark: SparkSession, table: str, warehouse: Path
) -> None:
    new = spark.sql("SELECT 9L AS id, 'x' AS extra")
    new.writeTo(table).option("mergeSchema", "true").append()
    spark.sql("SELECT 9 AS id, 1 AS last").write.mode("append").option(
        "mergeSchema", "true"
    ).saveAsTable(table)
    assert spark.table(table).columns == ["id", "name", "extra", "last"]
    assert len(rows(warehouse)) == 6
    with pytest.raises(AnalysisException, match=r"EXTRA_COLUMNS|TOO_MANY"):
        spark.sql("SELECT 9L AS id, 'x' AS other").writeTo(table).append()


@needs_spark("4.2", "INSERT WITH SCHEMA EVOLUTION")
def test_new_columns_come_in_by_sql(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {table} BY NAME SELECT 8L AS id, 1 AS more")
    assert spark.table(table).columns == ["id", "name", "more"]


def test_a_branch_is_written_by_its_name(spark: SparkSession, table: str, warehouse: Path) -> None:
    spark.sql("CALL lance.system.branch('w.t', 'trial')")
    spark.sql(f"INSERT INTO {table}.branch_trial VALUES (50, 'fifty')")
    assert spark.table(f"{table}.branch_trial").count() == 5
    assert len(rows(warehouse)) == 4


def test_an_option_that_is_misspelled_is_corrected(spark: SparkSession, table: str) -> None:
    new = spark.sql("SELECT 7L AS id, 'seven' AS name")
    error = failure(lambda: new.writeTo(table).option("txnApId", "x").append())
    assert isinstance(error, InvalidRequestError)
    assert "txnAppId" in str(error)


def test_paths_are_written_with_every_mode(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "plain.lance")
    spark.range(3).write.format("lance").option("userMetadata", "first").save(place)
    with refused(AlreadyExistsError):
        spark.range(3).write.format("lance").save(place)
    spark.range(3).write.format("lance").mode("ignore").save(place)
    spark.range(3, 5).write.format("lance").save(place, mode="append")
    spark.range(7, 8).write.save(place, format="lance", mode="overwrite", replaceWhere="id >= 2")
    dataset = lancelake.LanceDataset(place)
    assert sorted(dataset.to_table()["id"].to_pylist()) == [0, 1, 7]


def test_partitions_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    writer = spark.range(3).write.format("lance").partitionBy("id")
    with refused(UnsupportedError, match="partitioning"):
        writer.save(str(tmp_path / "p.lance"))
    error = failure(lambda: spark.sql("CREATE TABLE lance.w.p (a int) PARTITIONED BY (a)"))
    assert isinstance(error, UnsupportedError)
