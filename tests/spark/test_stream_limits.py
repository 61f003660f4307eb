"""Streams that take a little at a time, begin somewhere, and meet what others do to a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.errors import VersionNotFoundError
from lancelake.spark import LanceTable, error_of, write
from tests.support.spark_version import needs_spark


def numbers(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Return rows with an id, in one file."""
    return spark.range(start, stop, 1, 1)


def copy(
    spark: SparkSession,
    source: Path,
    target: Path,
    sink: dict[str, str] | None = None,
    **options: str,
) -> int:
    """Run a stream until it has read what there is, and return the number of its batches."""
    stream = spark.readStream.format("lance").options(**options).load(str(source))
    writer = stream.writeStream.format("lance").options(**(sink or {}))
    checkpoint = str(target.with_suffix(".checkpoint"))
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    running = query.start(str(target))
    running.awaitTermination()
    return len([p for p in running.recentProgress if p["numInputRows"]])


def opened(place: Path) -> lancelake.LanceDataset:
    """Return a table, checked."""
    dataset = lancelake.LanceDataset(str(place))
    dataset.validate()
    return dataset


def ids(place: Path) -> list[int]:
    """Return the ids of a table's rows, sorted."""
    return sorted(opened(place).to_table()["id"].to_pylist())


@pytest.fixture
def source(spark: SparkSession, tmp_path: Path) -> Path:
    """Return a table of four versions with ten rows each."""
    place = tmp_path / "source.lance"
    for start in range(0, 40, 10):
        write(numbers(spark, start, start + 10), str(place), "append")
    return place


@needs_spark("4.2", "limits of streams")
def test_a_batch_takes_no_more_than_allowed(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    assert copy(spark, source, target, maxRowsPerTrigger="20") == 2
    assert ids(target) == list(range(40))


def test_a_stream_begins_at_a_time(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    frame = LanceTable.forPath(spark, str(source)).history()
    third = frame.where("version = 3").collect()[0].timestamp
    copy(spark, source, tmp_path / "with.lance", startingTimestamp=third.isoformat())
    assert ids(tmp_path / "with.lance") == list(range(20, 40))


@pytest.mark.parametrize("stable", [True, False], ids=["stable_row_ids", "addresses"])
def test_compacted_rows_do_not_come_again(
    spark: SparkSession, tmp_path: Path, stable: bool
) -> None:
    source, target = tmp_path / "source.lance", tmp_path / "target.lance"
    for start in range(0, 30, 10):
        frame = numbers(spark, start, start + 10)
        write(frame, str(source), "append", stableRowIds=stable)
    copy(spark, source, target)
    LanceTable.forPath(spark, str(source)).optimize().executeCompaction()
    write(numbers(spark, 30, 31), str(source), "append")
    copy(spark, source, target)
    assert ids(target) == list(range(31))


def test_a_version_that_was_removed_is_named(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    copy(spark, source, target)
    for start in range(40, 60, 10):
        write(numbers(spark, start, start + 10), str(source), "append")
    LanceTable.forPath(spark, str(source)).vacuum(0)
    with pytest.raises(Exception, match="cleaned up") as caught:
        copy(spark, source, target)
    assert isinstance(error_of(caught.value), VersionNotFoundError)


@needs_spark("4.2", "limits of streams")
def test_a_sink_puts_small_files_together(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.lance"
    sink = {"compactEvery": "4"}
    assert copy(spark, source, target, sink, maxRowsPerTrigger="10") == 4
    assert ids(target) == list(range(40))
    assert len(opened(target).get_fragments()) == 1
