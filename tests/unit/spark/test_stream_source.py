"""Limits of the batches of a stream, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark.connector.limited_reader import LimitedReader
from lancelake.spark.connector.plain_reader import UnlimitedReader, VersionReader
from lancelake.spark.streaming.stream_source import STREAM_OPTIONS, TableStream
from lancelake.spark.values.options import parse

SCHEMA = StructType([StructField("id", LongType())])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a table of four versions with ten rows each."""
    found = tmp_path / "t.lance"
    for start in range(0, 40, 10):
        rows = pa.table({"id": range(start, start + 10)})
        lancelake.write_dataset(rows, found, mode="append" if start else "create")
    return found


def batches(place: Path, **options: str) -> list[int]:
    """Return the number of rows of each batch until all is read."""
    reader = LimitedReader(SCHEMA, {"path": str(place), **options})
    limit = reader.getDefaultReadLimit()
    at, found = reader.initialOffset(), []
    while (end := reader.latestOffset(at, limit)) != at:
        found.append(rows_between(reader, at, end))
        at = end
    return found


def rows_between(reader: VersionReader, start: dict[str, Any], end: dict[str, Any]) -> int:
    """Count the rows between two offsets."""
    parts = reader.partitions(start, end)
    return sum(batch.num_rows for part in parts for batch in reader.read(part))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [40]),
        ({"maxRowsPerTrigger": "20"}, [20, 20]),
        ({"maxRowsPerTrigger": "25"}, [20, 20]),
        ({"maxRowsPerTrigger": "1"}, [10, 10, 10, 10]),
        ({"maxBytesPerTrigger": "1"}, [10, 10, 10, 10]),
        ({"maxFilesPerTrigger": "3"}, [30, 10]),
        ({"maxFilesPerTrigger": "3", "maxRowsPerTrigger": "10"}, [10, 10, 10, 10]),
        ({"startingVersion": "1", "maxVersionsPerTrigger": "3"}, [30, 10]),
        ({"startingVersion": "3"}, [20]),
        ({"startingVersion": "latest"}, []),
        ({"startingTimestamp": "2001-01-01T00:00:00+00:00"}, [40]),
        ({"startingTimestamp": "2100-01-01T00:00:00Z"}, []),
    ],
)
def test_a_batch_takes_no_more_than_allowed(
    place: Path, options: dict[str, str], expected: list[int]
) -> None:
    assert batches(place, **options) == expected


def test_a_stream_without_limits_takes_all(place: Path) -> None:
    reader = LimitedReader(SCHEMA, {"path": str(place)})
    assert isinstance(reader.getDefaultReadLimit(), ReadAllAvailable)


def test_a_limit_of_zero_is_refused(place: Path) -> None:
    with pytest.raises(InvalidRequestError, match="at least 1"):
        batches(place, maxRowsPerTrigger="0")


def test_versions_committed_at_the_starting_time_are_in_the_stream(place: Path) -> None:
    at = [row["timestamp"] for row in lancelake.LanceDataset(place).versions()]
    found = batches(place, startingTimestamp=at[2].astimezone().isoformat())
    assert found == [20]


def test_a_reader_of_spark_4_1_takes_all_there_is(place: Path) -> None:
    reader = UnlimitedReader(SCHEMA, {"path": str(place)})
    start = reader.initialOffset()
    end = reader.latestOffset()
    assert rows_between(reader, start, end) == 40
    assert reader.partitions(end, reader.latestOffset()) == []


def test_a_reader_of_spark_4_1_continues_with_what_came_since(place: Path) -> None:
    reader = UnlimitedReader(SCHEMA, {"path": str(place), "startingVersion": "latest"})
    start = reader.initialOffset()
    lancelake.write_dataset(pa.table({"id": [40, 41]}), place, mode="append")
    assert rows_between(reader, start, reader.latestOffset()) == 2


def test_a_reader_of_spark_4_1_refuses_limits(place: Path) -> None:
    reader = UnlimitedReader(SCHEMA, {"path": str(place), "maxRowsPerTrigger": "5"})
    with pytest.raises(InvalidRequestError, match="maxRowsPerTrigger needs"):
        reader.initialOffset()


def test_a_reader_of_spark_4_1_refuses_versions_that_are_not_there(place: Path) -> None:
    reader = UnlimitedReader(SCHEMA, {"path": str(place), "startingVersion": "9"})
    with pytest.raises(InvalidRequestError, match="the newest version is 4"):
        reader.initialOffset()


def test_a_skipped_version_is_skipped_with_the_rows_that_it_inserts(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lancelake.write_dataset(pa.table({"id": range(3)}), path, enable_stable_row_ids=True)
    merge = lancelake.dataset(path).merge_insert("id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(pa.table({"id": [2, 10]}))
    lancelake.write_dataset(pa.table({"id": [20]}), path, mode="append")
    options = {"path": path, "skipChangeCommits": "true", "startingVersion": "1"}
    stream = TableStream.of(SCHEMA, parse(options, STREAM_OPTIONS))
    parts = stream.between(stream.begin(), stream.end())
    found = [batch.column(0).to_pylist() for part in parts for batch in part.batches()]
    assert found == [[0, 1, 2], [20]]


def test_small_fragments_share_a_task(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    lancelake.write_dataset(pa.table({"id": range(300)}), place, max_rows_per_file=1)
    reader = LimitedReader(SCHEMA, {"path": str(place)})
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    parts = reader.partitions(start, end)
    assert len(parts) <= 16
    found = [batch.column(0).to_pylist() for part in parts for batch in reader.read(part)]
    assert [i for ids in found for i in ids] == list(range(300))
