"""Changes of rows, read by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.spark import LanceTable, error_of
from tests.support.lance_errors import refused
from tests.support.spark_version import needs_spark
from tests.support.table_surgery import set_commit_time

NAME = "lance.feed.t"


@pytest.fixture(scope="module")
def place(spark: SparkSession, warehouse: Path) -> Iterator[Path]:
    """Return a table of five versions: made, filled, updated, deleted from, widened."""
    spark.sql("CREATE NAMESPACE lance.feed")
    spark.sql(f"CREATE TABLE {NAME} (id bigint, name string)")
    spark.sql(f"INSERT INTO {NAME} SELECT id, concat('n', id) FROM range(4)")
    spark.sql(f"UPDATE {NAME} SET name = 'x' WHERE id = 1")
    spark.sql(f"DELETE FROM {NAME} WHERE id = 2")
    spark.sql(f"ALTER TABLE {NAME} ADD COLUMN later int")
    yield warehouse / "feed" / "t.lance"
    spark.sql("DROP NAMESPACE lance.feed CASCADE")


UPDATED = [(3, "update_postimage", 1, "x"), (3, "update_preimage", 1, "n1")]
DELETED = [(4, "delete", 2, "n2")]


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return version, kind, id and name of changes, sorted."""
    columns = ["_commit_version", "_change_type", "id", "name"]
    return sorted(tuple(row) for row in frame.select(*columns).collect())


def test_a_range_has_its_first_and_its_last_version(spark: SparkSession, place: Path) -> None:
    reader = spark.read.format("lance").option("readChangeFeed", True)
    frame = reader.option("startingVersion", 3).option("endingVersion", 4).load(str(place))
    assert shown(frame) == UPDATED + DELETED


def test_columns_are_those_of_the_embedded_feed(spark: SparkSession, place: Path) -> None:
    embedded = lancelake.LanceDataset(place).changes(2, 4).read_all()
    frame = LanceTable.forPath(spark, str(place)).changes(2, 4)
    assert frame.columns == embedded.schema.names
    ours = {field.name: embedded[field.name].to_pylist() for field in embedded.schema}
    keys = ("_commit_version", "_change_type")

    def order(row: dict[str, Any]) -> list[Any]:
        return [row[key] for key in keys]

    rows = sorted((row.asDict() for row in frame.collect()), key=order)
    expected = sorted(pa.table(ours).to_pylist(), key=order)
    for row in rows + expected:
        row["_commit_timestamp"] = row["_commit_timestamp"].replace(tzinfo=None)
    assert rows == expected


def test_a_table_of_changes_shows_all_of_them(spark: SparkSession, place: Path) -> None:
    rows = shown(spark.table(f"{NAME}.changes"))
    assert len(rows) == 4 + len(UPDATED) + len(DELETED)


def test_options_of_a_query_choose_the_range(spark: SparkSession, place: Path) -> None:
    query = f"SELECT * FROM {NAME}.changes WITH (startingVersion = 4)"
    assert shown(spark.sql(query)) == DELETED


def test_conditions_on_versions_reach_the_plan(spark: SparkSession, place: Path) -> None:
    condition = "_commit_version > 2 AND _change_type = 'delete'"
    frame = spark.sql(f"SELECT * FROM {NAME}.changes WHERE {condition}")
    assert shown(frame) == DELETED
    plan = str(frame._jdf.queryExecution().executedPlan().toString())
    assert "_commit_version > 2, _change_type = 'delete']" in plan


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("_commit_version = 3", 2),
        ("_commit_version < 3", 4),
        ("3 <= _commit_version AND _commit_version <= 3 AND id = 1", 2),
        ("_commit_version > 99", 0),
        ("_commit_version < 0", 0),
        ("upper(name) = 'X'", 1),
    ],
)
def test_conditions_choose_changes(
    spark: SparkSession, place: Path, condition: str, count: int
) -> None:
    assert spark.table(f"{NAME}.changes").where(condition).count() == count


def test_times_bound_a_range(spark: SparkSession, place: Path) -> None:
    table = LanceTable.forPath(spark, str(place))
    at = [spark.sql(f"SELECT timestamp FROM {NAME}.versions WHERE version = {v}") for v in (3, 4)]
    third, fourth = [frame.collect()[0][0] for frame in at]
    assert shown(table.changes(third, fourth)) == UPDATED + DELETED
    assert shown(table.changes(third + timedelta(microseconds=1))) == DELETED


def test_the_newest_version_has_no_changes_after_it(spark: SparkSession, place: Path) -> None:
    newest = lancelake.LanceDataset(place).version
    assert shown(LanceTable.forPath(spark, str(place)).changes(newest)) == []


def test_net_changes_leave_out_what_came_between(spark: SparkSession, place: Path) -> None:
    rows = shown(LanceTable.forPath(spark, str(place)).changes(0, 4, net=True))
    assert [row[1:] for row in rows] == [
        ("insert", 0, "n0"),
        ("insert", 1, "x"),
        ("insert", 3, "n3"),
    ]


@needs_spark("4.2", "CHANGES FROM VERSION")
def test_sql_of_newer_sparks_reads_changes(spark: SparkSession, place: Path) -> None:
    frame = spark.sql(f"SELECT * FROM {NAME} CHANGES FROM VERSION 3 TO VERSION 4")
    assert shown(frame) == UPDATED + DELETED


def test_a_range_that_ends_before_it_begins_is_refused(spark: SparkSession, place: Path) -> None:
    with refused(InvalidRequestError, match="newer than"):
        LanceTable.forPath(spark, str(place)).changes(4, 2)


def test_options_of_a_range_need_the_feed(spark: SparkSession, place: Path) -> None:
    with refused(InvalidRequestError, match="startingVersion is an option of streams"):
        spark.read.format("lance").option("startingVersion", 3).load(str(place)).count()


def test_tables_without_stable_row_ids_say_why_not(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    lancelake.write_dataset(pa.table({"id": [1, 2]}), place)
    frame = LanceTable.forPath(spark, str(place)).changes(0)
    with pytest.raises(PySparkException) as caught:
        frame.collect()
    assert isinstance(error_of(caught.value), UnsupportedError)


def test_a_commit_with_an_earlier_time_than_the_one_before_it_is_in_the_feed(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = tmp_path / "skewed.lance"
    rows = pa.table({"id": [1], "name": ["n1"]})
    table = lancelake.write_dataset(rows, uri, enable_stable_row_ids=True)
    table.update({"name": "'x'"})
    table.delete("id = 1")
    for version, second in {1: 50, 2: 100, 3: 90}.items():
        set_commit_time(uri, version, second * 1_000_000_000)
    reader = spark.read.format("lance").option("readChangeFeed", True)
    frame = reader.option("startingTimestamp", "1970-01-01T00:01:40+00:00").load(str(uri))
    assert shown(frame) == [
        (2, "update_postimage", 1, "x"),
        (2, "update_preimage", 1, "n1"),
        (3, "delete", 1, "x"),
    ]
