"""OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY, functions, and options of other formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import SparkSession

from lancelake.commit.snapshot import Snapshot
from lancelake.describe import metadata_tables
from lancelake.errors import InvalidRequestError
from lancelake.spark import error_of
from tests.support.lance_errors import refused

NAME = "lance.m.t"


@pytest.fixture(autouse=True)
def table(spark: SparkSession) -> Iterator[None]:
    """Have a table of three versions, in a namespace that goes with it."""
    spark.sql("CREATE NAMESPACE lance.m")
    spark.sql(f"CREATE TABLE {NAME} (id BIGINT, n BIGINT)")
    for _ in range(2):
        spark.sql(f"INSERT INTO {NAME} SELECT id, id FROM range(10)")
    yield
    spark.sql("USE spark_catalog.default")
    spark.sql("DROP NAMESPACE lance.m CASCADE")


def test_optimize_compacts(spark: SparkSession) -> None:
    (row,) = spark.sql(f"OPTIMIZE {NAME}").collect()
    assert row.fragments_added == 1
    (row,) = spark.sql(f"optimize {NAME} WHERE n >= 0 ZORDER BY (id, n);").collect()
    assert row.fragments_removed == 1


def test_vacuum_cleans_up(spark: SparkSession) -> None:
    (row,) = spark.sql(f"VACUUM {NAME} RETAIN 0 HOURS DRY RUN").collect()
    assert (row.versions_removed, row.is_dry_run) == (2, True)
    (row,) = spark.sql(f"VACUUM {NAME} RETAIN 0 HOURS").collect()
    assert (row.versions_removed, row.is_dry_run) == (2, False)


def test_restore_returns_to_a_version_or_time(spark: SparkSession) -> None:
    spark.sql(f"RESTORE TABLE {NAME} TO VERSION AS OF 2")
    assert spark.table(NAME).count() == 10
    spark.sql(f"RESTORE {NAME} TIMESTAMP AS OF '2100-01-01'")
    assert spark.table(NAME).count() == 10


def test_history_is_described_in_the_current_namespace(spark: SparkSession) -> None:
    spark.sql("USE lance.m")
    rows = spark.sql("DESCRIBE HISTORY t LIMIT 2").collect()
    assert [row.version for row in rows] == [3, 2]


def test_table_valued_functions_return_metadata(spark: SparkSession) -> None:
    query = "SELECT version FROM lance.system.history('m.t') ORDER BY version"
    assert [row.version for row in spark.sql(query).collect()] == [1, 2, 3]
    spark.sql("USE lance.m")
    joined = "SELECT h.version FROM t JOIN lance.system.versions(table => 'lance.m.t') h ON id = 0"
    assert spark.sql(joined).count() == 6
    rows = spark.sql("SELECT * FROM `lance`.system.fragments('t')").collect()
    assert rows == spark.table("lance.m.t.fragments").collect()


@pytest.mark.parametrize(
    ("function", "hint"),
    [("compact", "CALL lance.system.compact('m.t')"), ("histories", "Did you mean history?")],
)
def test_functions_that_are_no_tables_are_refused(
    spark: SparkSession, function: str, hint: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"SELECT * FROM lance.system.{function}('m.t')")
    assert hint in str(error_of(caught.value))


def test_unknown_syntax_is_refused_with_the_known_one(spark: SparkSession) -> None:
    with pytest.raises(PySparkException) as caught:
        spark.sql(f"VACUUM {NAME} LITE")
    error = error_of(caught.value)
    assert isinstance(error, InvalidRequestError)
    assert "RETAIN number HOURS" in str(error)


def test_statements_on_other_tables_are_left_to_spark(spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        spark.sql("OPTIMIZE somewhere.t")


def test_options_of_other_formats_select_a_version(spark: SparkSession, warehouse: Path) -> None:
    place = str(warehouse / "m" / "t.lance")
    read = spark.read.format("lance")
    assert read.option("versionAsOf", 2).load(place).count() == 10
    read = spark.read.format("lance")
    assert read.option("timestampAsOf", "2100-01-01").load(place).count() == 20
    assert spark.read.option("versionAsOf", 2).table(NAME).count() == 10
    with refused(InvalidRequestError, match="options version and versionAsOf"):
        spark.read.format("lance").option("versionAsOf", 2).option("version", 2).load(place)


def test_a_path_in_quotes_is_a_table(spark: SparkSession, warehouse: Path) -> None:
    path = warehouse / "m" / "t.lance"
    assert spark.sql(f"OPTIMIZE '{path}'").first().fragments_added == 1
    assert spark.sql(f"VACUUM '{path}' DRY RUN").first().is_dry_run
    assert spark.sql(f"DESCRIBE HISTORY '{path}' LIMIT 1").count() == 1


def test_a_time_of_the_history_leads_to_its_version(spark: SparkSession, warehouse: Path) -> None:
    place = str(warehouse / "m" / "t.lance")
    rows = spark.sql(f"SELECT version, CAST(timestamp AS STRING) at FROM {NAME}.history").collect()
    assert len(rows) == 3
    for version, at in rows:
        expected = 10 * (version - 1)
        (found,) = spark.sql(f"SELECT count(*) FROM {NAME} TIMESTAMP AS OF '{at}'").first()
        assert found == expected
        frame = spark.read.format("lance").option("timestampAsOf", at).load(place)
        assert frame.count() == expected
        feed = (
            spark.read.format("lance").option("readChangeFeed", True).option("startingVersion", 1)
        )
        assert feed.option("endingTimestamp", at).load(place).count() == expected


def test_restore_returns_to_the_version_of_a_time_of_the_history(spark: SparkSession) -> None:
    query = f"SELECT CAST(timestamp AS STRING) at FROM {NAME}.history WHERE version = 2"
    (at,) = spark.sql(query).first()
    spark.sql(f"RESTORE TABLE {NAME} TO TIMESTAMP AS OF '{at}'")
    assert spark.table(NAME).count() == 10


def test_history_names_the_operations(spark: SparkSession) -> None:
    source = "(SELECT id + 5 AS id, 0L AS n FROM range(10)) s"
    spark.sql(f"UPDATE {NAME} SET n = 1 WHERE id = 3")
    spark.sql(f"DELETE FROM {NAME} WHERE id = 4")
    spark.sql(
        f"MERGE INTO {NAME} t USING {source} ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("CREATE TABLE lance.m.copy AS SELECT * FROM range(3)")
    spark.sql("CREATE OR REPLACE TABLE lance.m.copy AS SELECT * FROM range(2)")
    rows = spark.sql(f"DESCRIBE HISTORY {NAME}").collect()
    names = [row.operation for row in reversed(rows)]
    assert names == ["CREATE TABLE", "WRITE", "WRITE", "UPDATE", "DELETE", "MERGE"]
    counts = [{k: v for k, v in row.metrics.items() if k.startswith("rows_") and v} for row in rows]
    assert counts[:3] == [
        {"rows_inserted": 5, "rows_updated": 10},
        {"rows_deleted": 2},
        {"rows_updated": 2},
    ]
    assert {row.engine for row in rows} == {f"Spark {spark.version}"}
    copies = [row.operation for row in spark.sql("DESCRIBE HISTORY lance.m.copy").collect()]
    assert copies == ["REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"]


def test_a_limited_history_reads_that_many_versions(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[int] = []
    every = metadata_tables.history

    def watched(*args: Any, **kwargs: Any) -> Iterator[Snapshot]:
        for snapshot in every(*args, **kwargs):
            loaded.append(snapshot.version)
            yield snapshot

    monkeypatch.setattr(metadata_tables, "history", watched)
    (row,) = spark.sql(f"DESCRIBE HISTORY {NAME} LIMIT 1").collect()
    assert (row.version, set(loaded)) == (3, {3})
