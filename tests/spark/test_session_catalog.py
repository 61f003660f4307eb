"""Lance tables in Spark's session catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import UnsupportedError
from lancelake.spark import LanceTable, error_of


@pytest.fixture(autouse=True)
def database(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """Have a current database of the session catalog that goes with all its tables."""
    spark.sql(f"CREATE DATABASE spark_catalog.own LOCATION '{tmp_path / 'own.db'}'")
    spark.sql("USE spark_catalog.own")
    yield
    spark.sql("USE spark_catalog.default")
    spark.sql("DROP DATABASE spark_catalog.own CASCADE")


def ids(spark: SparkSession, name: str) -> list[int]:
    """Return the ids of a table, sorted."""
    return sorted(row.id for row in spark.table(name).collect())


def test_sql_creates_and_changes_a_table(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t (id INT PRIMARY KEY, v STRING DEFAULT 'd') USING lance")
    spark.sql("INSERT INTO t (id) VALUES (1), (2), (3)")
    spark.sql("UPDATE t SET v = 'u' WHERE id = 2")
    spark.sql("DELETE FROM t WHERE id = 3")
    spark.sql(
        "MERGE INTO t USING (SELECT 4 AS id, 'm' AS v) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    stored = lancelake.LanceDataset(tmp_path / "own.db" / "t").to_table().to_pylist()
    assert sorted(map(tuple, (row.values() for row in stored))) == [(1, "d"), (2, "u"), (4, "m")]
    assert "PRIMARY KEY (id)" in spark.sql("SHOW CREATE TABLE t").first()[0]


def test_frames_are_saved_with_every_mode(spark: SparkSession) -> None:
    spark.range(2).write.format("lance").saveAsTable("t")
    spark.range(2, 4).write.format("lance").mode("append").saveAsTable("t")
    assert ids(spark, "t") == [0, 1, 2, 3]
    # A table can be overwritten with its own rows: it is replaced when they have been written.
    spark.table("t").where("id > 2").write.format("lance").mode("overwrite").saveAsTable("t")
    assert ids(spark, "t") == [3]
    assert LanceTable.forName(spark, "t").history().count() == 3


def test_statements_and_metadata_tables_take_its_names(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t USING lance AS SELECT 1 AS id")
    spark.sql("INSERT INTO t VALUES (2)")
    assert spark.sql("OPTIMIZE t").first().fragments_removed == 2
    assert spark.sql("SELECT * FROM own.t.history").count() == 4
    assert spark.sql("DESCRIBE HISTORY t LIMIT 1").count() == 1
    assert spark.sql("SELECT * FROM t VERSION AS OF 1").count() == 1


def test_a_dropped_table_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t USING lance AS SELECT 1 AS id")
    spark.sql("DROP TABLE t")
    assert not (tmp_path / "own.db" / "t").exists()
    assert not spark.catalog.tableExists("t")


def test_an_external_table_keeps_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "a.lance"
    spark.range(3).write.format("lance").save(str(place))
    spark.sql(f"CREATE TABLE t USING lance LOCATION '{place}'")
    spark.sql("ALTER TABLE t RENAME TO u")
    assert ids(spark, "u") == [0, 1, 2]
    spark.sql("DROP TABLE u")
    assert lancelake.LanceDataset(place).count_rows() == 3


def test_views_read_it(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t USING lance AS SELECT 1 AS id")
    spark.sql("CREATE VIEW v AS SELECT id + 1 AS id FROM t")
    assert ids(spark, "v") == [2]


def test_streams_read_and_create_it(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE t USING lance AS SELECT 1 AS id")
    query = (
        spark.readStream.table("t")
        .writeStream.format("lance")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .toTable("copy")
    )
    query.awaitTermination()
    assert ids(spark, "copy") == [1]


def test_a_derived_session_knows_it(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE t USING lance AS SELECT 1 AS id")
    derived = spark.newSession()
    derived.sql("UPDATE own.t SET id = 5")
    assert ids(derived, "own.t") == [5]


def test_other_formats_are_left_to_spark(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE p USING parquet AS SELECT 1 AS id")
    spark.range(3).write.format("parquet").mode("overwrite").saveAsTable("p")
    assert ids(spark, "p") == [0, 1, 2]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE TABLE p (id INT) USING lance")
    with pytest.raises(PySparkException) as caught:
        spark.sql("CREATE OR REPLACE TABLE p USING lance AS SELECT 1 AS id")
    assert isinstance(error_of(caught.value), UnsupportedError)


def test_a_missing_database_is_named(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        spark.sql("CREATE TABLE nowhere.t (id INT) USING lance")
