"""Catalogs in the sessions that Spark derives from a registered one: clones and new sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lancelake.spark import register, session

DEFAULT = "spark.sql.defaultCatalog"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table of three rows."""
    name = "lance.derived.t"
    spark.sql("CREATE NAMESPACE lance.derived")
    spark.sql(f"CREATE TABLE {name} (id BIGINT, text STRING)")
    spark.sql(f"INSERT INTO {name} VALUES (0, 'old'), (1, 'old'), (2, 'old')")
    yield name
    spark.sql("DROP NAMESPACE lance.derived CASCADE")


def rows(spark: SparkSession, table: str) -> list[tuple[int, str]]:
    """Return the rows of a table, sorted."""
    return sorted((row.id, row.text) for row in spark.table(table).collect())


def in_a_batch(spark: SparkSession, folder: Path, action: Callable[[DataFrame], object]) -> None:
    """Run an action on the rows (2, 'new') and (3, 'new') of a stream, in its session."""
    source = folder / "source"
    spark.sql("SELECT id, 'new' AS text FROM range(2, 4)").write.json(str(source))
    stream = spark.readStream.schema("id BIGINT, text STRING").json(str(source))
    query = stream.writeStream.foreachBatch(lambda frame, _: action(frame) and None)
    query.trigger(availableNow=True).start().awaitTermination()


def merge(frame: DataFrame) -> None:
    frame.createOrReplaceTempView("batch")
    frame.sparkSession.sql(
        "MERGE INTO lance.derived.t t USING batch b ON t.id = b.id "
        "WHEN MATCHED THEN UPDATE SET text = b.text WHEN NOT MATCHED THEN INSERT *"
    )


def test_a_batch_merges_in_sql(spark: SparkSession, table: str, tmp_path: Path) -> None:
    in_a_batch(spark, tmp_path, merge)
    assert rows(spark, table) == [(0, "old"), (1, "old"), (2, "new"), (3, "new")]


def append(frame: DataFrame) -> None:
    frame.write.mode("append").saveAsTable("lance.derived.t")


def append_v2(frame: DataFrame) -> None:
    frame.writeTo("lance.derived.t").append()


@pytest.mark.parametrize("write", [append, append_v2])
def test_a_batch_appends_to_a_named_table(
    spark: SparkSession, table: str, tmp_path: Path, write: Callable[[DataFrame], None]
) -> None:
    in_a_batch(spark, tmp_path, write)
    assert rows(spark, table)[2:] == [(2, "new"), (2, "old"), (3, "new")]


def test_a_batch_reads_a_named_table(spark: SparkSession, table: str, tmp_path: Path) -> None:
    values: list[int] = []
    in_a_batch(
        spark, tmp_path, lambda frame: values.append(frame.sparkSession.table(table).count())
    )
    assert values == [3]


def test_a_batch_uses_the_default_catalog(spark: SparkSession, table: str, tmp_path: Path) -> None:
    values: list[int] = []

    def count(frame: DataFrame) -> None:
        values.append(frame.sparkSession.sql("SELECT * FROM derived.t").count())

    spark.conf.set(DEFAULT, "lance")
    try:
        in_a_batch(spark, tmp_path, count)
    finally:
        spark.conf.unset(DEFAULT)
    assert values == [len(rows(spark, table))]


def test_a_new_session_reads_and_updates(spark: SparkSession, table: str) -> None:
    new = spark.newSession()
    new.sql(f"UPDATE {table} SET text = 'new' WHERE id = 1")
    assert rows(new, table) == [(0, "old"), (1, "new"), (2, "old")]


def test_a_new_session_makes_the_catalog_its_current_one(spark: SparkSession, table: str) -> None:
    new = spark.newSession()
    new.catalog.setCurrentCatalog("lance")
    assert new.table("derived.t").count() == len(rows(spark, table))
    assert spark.catalog.currentCatalog() == "spark_catalog"


def test_a_new_session_streams_a_table(spark: SparkSession, table: str, tmp_path: Path) -> None:
    new = spark.newSession()
    stream = new.readStream.table(table).writeStream.format("lance")
    target = tmp_path / "copy.lance"
    checkpoint = str(tmp_path / "checkpoint")
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    query.start(str(target)).awaitTermination()
    assert new.read.format("lance").load(str(target)).count() == len(rows(spark, table))


def test_a_new_session_runs_commands_with_its_own_settings(spark: SparkSession, table: str) -> None:
    new = spark.newSession()
    new.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    new.sql(f"UPDATE {table} SET text = cast(timestamp'1970-01-01 00:00:00Z' AS STRING)")
    assert {text for _, text in rows(new, table)} == {"1970-01-01 09:00:00"}


@pytest.mark.parametrize("ask", [lambda _: session(), register])
def test_a_session_that_is_asked_for_again_keeps_the_root(
    spark: SparkSession, table: str, ask: Callable[[SparkSession], SparkSession]
) -> None:
    assert ask(spark).table(table).count() == len(rows(spark, table))


def test_another_root_of_the_settings_is_taken(
    spark: SparkSession, table: str, warehouse: Path, tmp_path: Path
) -> None:
    try:
        other = session(**{"spark.lancelake.root": str(tmp_path)})
        assert not other.catalog.tableExists(table)
    finally:
        register(spark, root=str(warehouse))
