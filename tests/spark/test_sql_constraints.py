"""Primary keys, default values and clustering columns declared in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import InvalidRequestError, NotFoundError, UnsupportedError
from lancelake.spark import LanceTable, error_of


@pytest.fixture(autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.c")
    yield
    spark.sql("DROP NAMESPACE lance.c CASCADE")


def failure(spark: SparkSession, sql: str) -> Exception | None:
    """Return the error of ours inside what a statement raises."""
    with pytest.raises((PySparkException, Py4JJavaError)) as caught:
        spark.sql(sql)
    return error_of(caught.value)


def key(warehouse: Path) -> list[str]:
    """Return the columns of the primary key, without Spark."""
    schema = lancelake.LanceDataset(warehouse / "c" / "t.lance").lance_schema
    fields = [f for f in schema.fields() if f.is_unenforced_primary_key()]
    return [f.name() for f in fields]


@pytest.mark.parametrize(
    "columns",
    [
        "id INT PRIMARY KEY, n INT",
        "id INT, n INT, CONSTRAINT k PRIMARY KEY (id)",
    ],
)
def test_a_primary_key_is_declared_at_creation(
    spark: SparkSession, warehouse: Path, columns: str
) -> None:
    spark.sql(f"CREATE TABLE lance.c.t ({columns})")
    assert key(warehouse) == ["id"]
    assert not spark.table("lance.c.t").schema["id"].nullable


def test_a_primary_key_is_dropped_and_added(spark: SparkSession, warehouse: Path) -> None:
    spark.sql("CREATE TABLE lance.c.t (id INT NOT NULL, n INT, CONSTRAINT k PRIMARY KEY (id))")
    assert isinstance(failure(spark, "ALTER TABLE lance.c.t DROP CONSTRAINT other"), NotFoundError)
    spark.sql("ALTER TABLE lance.c.t DROP CONSTRAINT IF EXISTS other")
    spark.sql("ALTER TABLE lance.c.t DROP CONSTRAINT k")
    assert key(warehouse) == []
    error = failure(spark, "ALTER TABLE lance.c.t ADD CONSTRAINT k PRIMARY KEY (n)")
    assert isinstance(error, InvalidRequestError)
    spark.sql("ALTER TABLE lance.c.t ADD CONSTRAINT k PRIMARY KEY (id)")
    assert key(warehouse) == ["id"]


@pytest.mark.parametrize("columns", ["id INT CHECK (id > 0)", "id INT UNIQUE"])
def test_constraints_that_would_not_be_checked_are_refused(
    spark: SparkSession, columns: str
) -> None:
    error = failure(spark, f"CREATE TABLE lance.c.t ({columns})")
    assert isinstance(error, UnsupportedError)


def test_a_default_fills_columns_that_a_statement_omits(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE lance.c.t (id INT, n INT DEFAULT 5, s STRING DEFAULT 'x')")
    spark.sql("INSERT INTO lance.c.t (id) VALUES (1)")
    spark.sql("INSERT INTO lance.c.t VALUES (2, DEFAULT, 'y')")
    spark.sql(
        "MERGE INTO lance.c.t t USING (SELECT 3 AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    spark.sql("UPDATE lance.c.t SET s = DEFAULT WHERE id = 2")
    spark.sql("ALTER TABLE lance.c.t ALTER COLUMN n SET DEFAULT 6")
    spark.sql("ALTER TABLE lance.c.t ALTER COLUMN s DROP DEFAULT")
    spark.sql("INSERT INTO lance.c.t (id) VALUES (4)")
    rows = spark.table("lance.c.t").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, 5, "x"), (2, 5, "x"), (3, 5, "x"), (4, 6, None)]


def test_a_default_fills_columns_that_a_frame_lacks(spark: SparkSession, warehouse: Path) -> None:
    spark.sql("CREATE TABLE lance.c.t (id INT, n INT DEFAULT 5)")
    frame = spark.createDataFrame([(1,)], "id int")
    frame.write.format("lance").mode("append").save(str(warehouse / "c" / "t.lance"))
    assert [tuple(row) for row in spark.table("lance.c.t").collect()] == [(1, 5)]


def test_a_new_column_has_its_default_in_every_row(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE lance.c.t (id INT)")
    spark.sql("INSERT INTO lance.c.t VALUES (1), (2), (3)")
    spark.sql("DELETE FROM lance.c.t WHERE id = 2")
    spark.sql("ALTER TABLE lance.c.t ADD COLUMN n INT NOT NULL DEFAULT 7")
    spark.sql("ALTER TABLE lance.c.t ADD COLUMN d DATE DEFAULT DATE'2026-01-31'")
    spark.sql("INSERT INTO lance.c.t (id) VALUES (4)")
    rows = spark.sql("SELECT id, n, CAST(d AS STRING) FROM lance.c.t ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(i, 7, "2026-01-31") for i in (1, 3, 4)]
    assert not spark.table("lance.c.t").schema["n"].nullable


def test_compaction_orders_rows_by_the_clustering_columns(
    spark: SparkSession, warehouse: Path
) -> None:
    spark.sql("CREATE TABLE lance.c.t (id BIGINT, n BIGINT) CLUSTER BY (n)")
    for _ in range(3):
        spark.sql("INSERT INTO lance.c.t SELECT id, (id * 37) % 100 FROM range(100)")
    LanceTable.forName(spark, "lance.c.t").optimize().executeCompaction()
    rows = lancelake.LanceDataset(warehouse / "c" / "t.lance").to_table()
    assert rows["n"].to_pylist() == sorted(rows["n"].to_pylist())
    spark.sql("ALTER TABLE lance.c.t CLUSTER BY (id, n)")
    described = spark.sql("DESCRIBE TABLE lance.c.t").collect()
    assert [row.col_name for row in described][-2:] == ["id", "n"]
    spark.sql("ALTER TABLE lance.c.t CLUSTER BY NONE")
    assert "cluster_by" not in spark.sql("SHOW CREATE TABLE lance.c.t").first()[0]


def test_a_shown_definition_creates_the_same_table(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE lance.c.t (id INT NOT NULL, n INT DEFAULT 5 COMMENT 'c', s STRING, "
        "v VARCHAR(9), CONSTRAINT k PRIMARY KEY (id)) CLUSTER BY (id, n) COMMENT 'about' "
        "TBLPROPERTIES ('team' = 'x')"
    )
    shown = spark.sql("SHOW CREATE TABLE lance.c.t").first()[0]
    spark.sql("DROP TABLE lance.c.t")
    spark.sql(shown)
    assert spark.sql("SHOW CREATE TABLE lance.c.t").first()[0] == shown
