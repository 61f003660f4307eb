"""Texts of users are read in Spark's dialect and in the session's time zone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.errors import InvalidExpressionError, InvalidRequestError
from lancelake.spark import LanceTable
from tests.support.lance_errors import refused

TOKYO = timezone(timedelta(hours=9))
DAYS = [datetime(2023, 11, day, hour, tzinfo=TOKYO) for day, hour in ((15, 20), (16, 1), (16, 20))]


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    """Return the session, in another time zone."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Return a table with a time, a floating-point number and a group."""
    table = pa.table(
        {
            "ts": pa.array(DAYS, pa.timestamp("us", "UTC")),
            "x": [1.0, float("nan"), -0.0],
            "g": [1, 2, 1],
        }
    )
    uri = str(tmp_path / "t.lance")
    lancelake.write_dataset(table, uri, max_rows_per_file=1)
    return uri


def column(place: str, name: str) -> list[Any]:
    """Return the values of a column."""
    return sorted(lancelake.LanceDataset(place).to_table()[name].to_pylist())


def replacing(spark: SparkSession, place: str, condition: str, values: str) -> None:
    """Replace the rows for which a condition holds by one row."""
    rows = spark.sql(f"SELECT {values}")
    rows.write.format("lance").mode("overwrite").option("replaceWhere", condition).save(place)


def test_replaced_times_are_in_the_sessions_zone(tokyo: SparkSession, place: str) -> None:
    condition = "ts > '2023-11-16 00:00:00'"
    replacing(tokyo, place, condition, "TIMESTAMP '2023-11-17 00:00:00' AS ts, 7.0D AS x, 3L AS g")
    kept = [DAYS[0], datetime(2023, 11, 17, tzinfo=TOKYO)]
    assert column(place, "ts") == kept


@pytest.mark.parametrize(
    ("condition", "row", "groups"),
    [
        ("x = double('NaN')", ("2023-11-17", "double('NaN')"), [1, 1, 9]),
        ("x = 0", ("2023-11-17", "0"), [1, 2, 9]),
        (r"'\'' <> '' AND (g = 1 OR g = 9) AND '\'' <> ''", ("2023-11-17", "0"), [2, 9]),
        ("date_format(ts, 'E') = 'Thu'", ("2023-11-16", "7"), [1, 2, 9]),
    ],
)
def test_conditions_mean_what_they_mean_to_spark(
    spark: SparkSession, place: str, condition: str, row: tuple[str, str], groups: list[int]
) -> None:
    time, number = row
    values = f"TIMESTAMP '{time}' AS ts, CAST({number} AS DOUBLE) AS x, 9L AS g"
    replacing(spark, place, condition, values)
    assert column(place, "g") == groups


def test_char_columns_are_compared_as_spark_does(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.texts")
    spark.sql("CREATE OR REPLACE TABLE lance.texts.c (k CHAR(4), n INT)")
    spark.sql("INSERT INTO lance.texts.c VALUES ('ab', 1), ('cd', 2)")
    rows = spark.sql("SELECT 'ab' AS k, 3 AS n")
    rows.write.mode("overwrite").option("replaceWhere", "k = 'ab'").saveAsTable("lance.texts.c")
    assert sorted(row.n for row in spark.table("lance.texts.c").collect()) == [2, 3]


@pytest.mark.parametrize("group", ["2L", "CAST(NULL AS BIGINT)"])
def test_rows_that_the_condition_would_not_replace_are_refused(
    spark: SparkSession, place: str, group: str
) -> None:
    cached = spark.read.format("lance").load(place).cache()
    cached.count()
    values = f"TIMESTAMP '2023-11-17 00:00:00' AS ts, 7.0D AS x, {group} AS g"
    with refused(InvalidRequestError, match="the condition of the overwrite: g = 1"):
        replacing(spark, place, "g = 1", values)
    with refused(InvalidRequestError, match="the condition of the overwrite"):
        replacing(spark, f"{place}.new", "g = 1", values)
    cached.unpersist()
    assert lancelake.LanceDataset(place).version == 1


def test_a_condition_that_spark_cannot_bind_is_refused(spark: SparkSession, place: str) -> None:
    values = "TIMESTAMP '2023-11-17 00:00:00' AS ts, 7.0D AS x, 1L AS g"
    for condition, problem in (("gg = 1", "gg"), ("g = ", "PARSE_SYNTAX_ERROR")):
        with refused(InvalidExpressionError, match=problem):
            replacing(spark, place, condition, values)


@pytest.fixture
def second(place: str) -> datetime:
    """Return when the second version was committed, after appending one row."""
    row = pa.table({"ts": pa.array(DAYS[:1], pa.timestamp("us", "UTC")), "x": [2.0], "g": [4]})
    lancelake.write_dataset(row, place, mode="append")
    result: datetime = lancelake.LanceDataset(place).versions()[-1]["timestamp"]
    return result.astimezone(UTC)


def local(time: datetime) -> str:
    """Return a time as a user in Tokyo writes it."""
    return time.astimezone(TOKYO).strftime("%Y-%m-%d %H:%M:%S.%f")


READERS: dict[str, Callable[[SparkSession, str, str], int]] = {
    "the option timestamp": lambda spark, place, time: (
        spark.read.format("lance").option("timestamp", time).load(place).count()
    ),
    "TIMESTAMP AS OF": lambda spark, place, time: spark.sql(
        f"SELECT * FROM lance.`{place}` TIMESTAMP AS OF '{time}'"
    ).count(),
    "the end of a change feed": lambda spark, place, time: (
        spark.read.format("lance")
        .option("readChangeFeed", True)
        .option("startingVersion", 1)
        .option("endingTimestamp", time)
        .load(place)
        .count()
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_times_are_in_the_sessions_zone(tokyo: SparkSession, tmp_path: Path, reader: str) -> None:
    place = str(tmp_path / "s.lance")
    lancelake.write_dataset(pa.table({"g": [1, 2, 3]}), place, enable_stable_row_ids=True)
    lancelake.write_dataset(pa.table({"g": [4]}), place, mode="append")
    at: datetime = lancelake.LanceDataset(place).versions()[-1]["timestamp"]
    at = at.astimezone(UTC)
    read = READERS[reader]
    counts = [read(tokyo, place, local(at + timedelta(microseconds=d))) for d in (1, -1)]
    assert counts == [4, 3]


def test_a_restore_is_in_the_sessions_zone(
    tokyo: SparkSession, place: str, second: datetime
) -> None:
    table = LanceTable.forPath(tokyo, place)
    table.restoreToTimestamp(local(second - timedelta(microseconds=1)))
    assert table.toDF().count() == 3


def test_a_stream_starts_in_the_sessions_zone(
    tokyo: SparkSession, place: str, second: datetime, tmp_path: Path
) -> None:
    stream = tokyo.readStream.format("lance").option("startingTimestamp", local(second))
    copy = str(tmp_path / "copy.lance")
    sink = stream.load(place).writeStream.format("lance").trigger(availableNow=True)
    sink.option("checkpointLocation", str(tmp_path / "cp")).start(copy).awaitTermination()
    assert column(copy, "g") == [4]


def test_compaction_finds_fragments_by_sparks_conditions(tokyo: SparkSession, place: str) -> None:
    table = LanceTable.forPath(tokyo, place)
    done = table.optimize().where("ts > '2023-11-16 00:00:00'").executeCompaction().collect()[0]
    assert (done.fragments_removed, done.fragments_added) == (2, 1)


def test_new_columns_are_computed_by_sparks_sql(tokyo: SparkSession, place: str) -> None:
    table = LanceTable.forPath(tokyo, place)
    table.addColumns({"day": "date_format(ts, 'dd')", "twice": f.col("g") * 2})
    assert column(place, "day") == ["15", "16", "16"]
    assert column(place, "twice") == [2, 2, 4]
