"""A stream goes on only with the table and the columns of its checkpoint."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StringType, StructField, StructType

import lancelake
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.spark.connector.limited_reader import LimitedReader
from lancelake.spark.connector.plain_reader import UnlimitedReader

STRUCT = StructType([StructField("a", LongType()), StructField("b", LongType())])
FIELDS = {"id": LongType(), "text": StringType(), "st": STRUCT}
LEGACY = ("version", "done", "snapshot")

Offset = dict[str, Any]
Row = dict[str, Any]


def rows(start: int, names: tuple[str, ...] = ("id", "text", "st")) -> pa.Table:
    """Return two rows."""
    every = {
        "id": [start, start + 1],
        "text": [f"t{start}", f"t{start + 1}"],
        "st": [{"a": start, "b": -start}] * 2,
    }
    return pa.table({name: every.get(name, every["text"]) for name in names})


def made(place: Path, versions: int = 2) -> lancelake.LanceDataset:
    """Make a table of some versions."""
    for number in range(versions):
        mode = "append" if number else "create"
        lancelake.write_dataset(
            rows(2 * number),
            place,
            mode=mode,
            enable_stable_row_ids=True,
            data_storage_version="2.2",
        )
    return lancelake.LanceDataset(place)


def reader(place: Path, *columns: str, **options: str) -> LimitedReader:
    """Return a stream of columns."""
    names = columns or ("id", "text", "st")
    schema = StructType([StructField(name, FIELDS.get(name, StringType())) for name in names])
    return LimitedReader(schema, {"path": str(place), **options})


def batch(stream: LimitedReader, start: Offset) -> tuple[Offset, list[Row]]:
    """Return what the next batch brings, and where it ends."""
    end = stream.latestOffset(start, ReadAllAvailable())
    parts = stream.partitions(start, end)
    return end, [r for part in parts for b in stream.read(part) for r in b.to_pylist()]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a table of two versions."""
    found = tmp_path / "t.lance"
    made(found)
    return found


@pytest.fixture
def reached(place: Path) -> Offset:
    """Return where a stream stands that has read all there is."""
    stream = reader(place)
    return batch(stream, stream.initialOffset())[0]


CHANGES: dict[str, tuple[Callable[[lancelake.LanceDataset], object], str]] = {
    "renamed": (
        lambda ds: ds.alter_columns({"path": "text", "name": "words"}),
        "column text was renamed to words",
    ),
    "dropped": (lambda ds: ds.drop_columns(["text"]), "column text was dropped"),
    "replaced": (
        lambda ds: (ds.drop_columns(["text"]), ds.add_columns({"text": "'new'"})),
        "column text was dropped",
    ),
    "a member renamed": (
        lambda ds: ds.alter_columns({"path": "st.a", "name": "z"}),
        "column st.a was renamed to st.z",
    ),
    "a member dropped": (lambda ds: ds.drop_columns(["st.a"]), "column st.a was dropped"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_running_stream_ends_when_a_column_changes(
    place: Path, reached: Offset, change: str
) -> None:
    act, problem = CHANGES[change]
    stream = reader(place)
    act(lancelake.LanceDataset(place))
    with pytest.raises(SchemaMismatchError, match=problem):
        batch(stream, reached)


@pytest.mark.parametrize("change", CHANGES)
def test_a_stream_without_identity_ends_too(place: Path, reached: Offset, change: str) -> None:
    act, _ = CHANGES[change]
    old = {key: reached[key] for key in LEGACY}
    act(lancelake.LanceDataset(place))
    with pytest.raises(SchemaMismatchError):
        batch(reader(place), old)


def test_a_stream_started_again_ends_when_a_column_was_renamed(
    place: Path, reached: Offset
) -> None:
    lancelake.LanceDataset(place).alter_columns({"path": "text", "name": "words"})
    with pytest.raises(SchemaMismatchError, match=r"renamed to words.*new checkpoint"):
        batch(reader(place, "id", "words", "st"), reached)


def test_a_stream_started_again_ends_when_a_column_was_dropped(
    place: Path, reached: Offset
) -> None:
    lancelake.LanceDataset(place).drop_columns(["text"])
    with pytest.raises(SchemaMismatchError, match="column text was dropped"):
        batch(reader(place, "id", "st"), reached)


def test_versions_before_a_rename_are_not_read_as_nulls(place: Path) -> None:
    lancelake.LanceDataset(place).alter_columns({"path": "text", "name": "words"})
    stream = reader(place, "id", "words", "st", startingVersion="1")
    with pytest.raises(SchemaMismatchError, match="words was renamed to text"):
        batch(stream, stream.initialOffset())


def test_a_stream_continues_when_a_column_was_added(place: Path, reached: Offset) -> None:
    lancelake.LanceDataset(place).add_columns(pa.schema([("more", pa.string())]))
    lancelake.write_dataset(rows(9, ("id", "text", "st", "more")), place, mode="append")
    _, found = batch(reader(place), reached)
    assert [row["id"] for row in found] == [9, 10]
    _, again = batch(reader(place, "id", "text", "st", "more"), reached)
    assert [row["more"] for row in again] == ["t9", "t10"]


def test_a_stream_may_read_fewer_columns_than_before(place: Path, reached: Offset) -> None:
    lancelake.write_dataset(rows(9), place, mode="append")
    _, found = batch(reader(place, "id"), reached)
    assert found == [{"id": 9}, {"id": 10}]


@pytest.mark.parametrize("versions", [1, 2, 5])
def test_a_stream_ends_on_a_table_that_was_created_again(
    place: Path, reached: Offset, versions: int
) -> None:
    shutil.rmtree(place)
    made(place, versions)
    with pytest.raises(InvalidRequestError, match="another table, or it was recreated"):
        batch(reader(place), reached)


def test_a_batch_that_is_run_again_ends_on_another_table(
    place: Path, reached: Offset, tmp_path: Path
) -> None:
    start = reader(place).initialOffset()
    made(tmp_path / "other.lance", 5)
    with pytest.raises(InvalidRequestError, match="another table"):
        reader(tmp_path / "other.lance").partitions(start, reached)


def test_a_stream_ends_on_another_branch(place: Path, reached: Offset) -> None:
    lancelake.LanceDataset(place).create_branch("trial")
    with pytest.raises(InvalidRequestError, match=r"branch main.*branch trial"):
        batch(reader(place, branch="trial"), reached)


def test_a_table_may_be_moved(place: Path, reached: Offset, tmp_path: Path) -> None:
    moved = place.rename(tmp_path / "moved.lance")
    lancelake.write_dataset(rows(9), moved, mode="append")
    _, found = batch(reader(moved), reached)
    assert [row["id"] for row in found] == [9, 10]


def test_a_checkpoint_without_identity_continues_and_gets_one(place: Path, reached: Offset) -> None:
    old = {key: reached[key] for key in LEGACY}
    stream = reader(place)
    assert stream.latestOffset(old, ReadAllAvailable()) == old
    lancelake.write_dataset(rows(9), place, mode="append")
    end, found = batch(stream, old)
    assert [row["id"] for row in found] == [9, 10]
    shutil.rmtree(place)
    made(place, 7)
    with pytest.raises(InvalidRequestError, match="recreated"):
        batch(reader(place), end)


def test_nothing_new_leaves_the_offset_as_it_is(place: Path, reached: Offset) -> None:
    assert reader(place, "id").latestOffset(reached, ReadAllAvailable()) == reached


def test_a_reader_of_spark_4_1_ends_on_a_table_that_was_created_again(
    place: Path, reached: Offset
) -> None:
    shutil.rmtree(place)
    made(place)
    schema = StructType([StructField("id", LongType())])
    stream = UnlimitedReader(schema, {"path": str(place)})
    end = stream.latestOffset()
    assert end != reached
    with pytest.raises(InvalidRequestError, match="recreated"):
        stream.partitions(reached, end)


@pytest.mark.parametrize("broken", [{"table": 3}, {"table": {}, "fields": {}}, {"version": "x"}])
def test_an_offset_of_another_source_is_refused(
    place: Path, reached: Offset, broken: Offset
) -> None:
    with pytest.raises(InvalidRequestError, match="does not belong to a Lance stream"):
        reader(place).latestOffset({**reached, **broken}, ReadAllAvailable())
