"""Columns of CHAR(n) in commands on rows, whether or not Spark pads what it reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake
from lancelake.spark import LanceTable

TABLE = "lance.letters"
SETTING = "spark.sql.readSideCharPadding"


@pytest.fixture(params=["true", "false"], ids=["padded", "plain"])
def table(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Return the name of a table of two rows that has a CHAR column."""
    spark.conf.set(SETTING, request.param)
    spark.sql(f"CREATE TABLE {TABLE} (id BIGINT, v CHAR(5), w STRING)")
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, 'ab', 'x'), (2, 'cd', 'y')")
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE}")
    spark.conf.unset(SETTING)


@pytest.fixture
def path(table: str, warehouse: Path) -> Path:
    """Return where the table is stored."""
    del table
    return warehouse / "letters.lance"


def stored(path: Path) -> list[tuple[int, str | None, str]]:
    """Return the rows as they are stored."""
    dataset = lancelake.LanceDataset(path)
    dataset.validate()
    return sorted(tuple(row.values()) for row in dataset.to_table().to_pylist())


FIRST, SECOND = (1, "ab   ", "x"), (2, "cd   ", "y")


def test_every_row_is_updated(spark: SparkSession, table: str, path: Path) -> None:
    spark.sql(f"UPDATE {table} SET v = 'c'")
    assert stored(path) == [(1, "c    ", "x"), (2, "c    ", "y")]


def test_a_literal_in_a_condition_is_padded(spark: SparkSession, table: str, path: Path) -> None:
    spark.sql(f"UPDATE {table} SET w = 'z' WHERE v = 'ab'")
    assert stored(path) == [(1, "ab   ", "z"), SECOND]


def test_expressions_use_the_padded_value(spark: SparkSession, table: str, path: Path) -> None:
    spark.sql(f"UPDATE {table} SET w = concat('[', v, ']') WHERE id = 1")
    assert stored(path) == [(1, "ab   ", "[ab   ]"), SECOND]


@pytest.mark.parametrize("condition", ["v = 'ab'", "v IN ('ab', 'q')", "length(v) = 5 AND id = 1"])
def test_rows_are_deleted(spark: SparkSession, table: str, path: Path, condition: str) -> None:
    spark.sql(f"DELETE FROM {table} WHERE {condition}")
    assert stored(path) == [SECOND]


@pytest.mark.parametrize("command", ["DELETE FROM {}", "UPDATE {} SET w = 'z'"])
def test_values_that_another_writer_did_not_pad_are_found(
    spark: SparkSession, table: str, path: Path, command: str
) -> None:
    row = pa.table({"id": pa.array([3], pa.int64()), "v": ["ef"], "w": ["u"]})
    lancelake.write_dataset(row, path, mode="append")
    spark.sql(command.format(table) + " WHERE v = 'ef'")
    left = [] if command.startswith("DELETE") else [(3, "ef", "z")]
    assert stored(path) == [FIRST, SECOND, *left]


MERGE = "MERGE INTO {} t USING (SELECT {} AS id, {} AS v, 'new' AS w) s ON {} "
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.mark.parametrize("id_", [1, 9])
def test_a_merge_writes_whole_rows(spark: SparkSession, table: str, path: Path, id_: int) -> None:
    spark.sql(MERGE.format(table, f"{id_}L", "'zz'", "t.id = s.id") + UPSERT)
    kept = [SECOND] if id_ == 1 else [FIRST, SECOND]
    assert stored(path) == sorted([*kept, (id_, "zz   ", "new")])


@pytest.mark.parametrize("key", ["ab", "ab   ", "ab        "])
def test_a_merge_matches_a_char_key(spark: SparkSession, table: str, path: Path, key: str) -> None:
    spark.sql(MERGE.format(table, "7L", f"'{key}'", "t.v = s.v") + UPSERT)
    assert stored(path) == [SECOND, (7, "ab   ", "new")]


@pytest.mark.parametrize("key", ["ab", "ab   "])
def test_a_merge_of_a_frame_matches_a_char_key(
    spark: SparkSession, table: str, path: Path, key: str
) -> None:
    del table
    source = spark.createDataFrame([(7, key, "new")], "id long, v string, w string")
    merge = LanceTable.forPath(spark, str(path)).merge(source, "target.v = source.v")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert stored(path) == [SECOND, (7, "ab   ", "new")]


def test_a_merge_of_a_frame_adds_a_padded_key(spark: SparkSession, table: str, path: Path) -> None:
    del table
    source = spark.createDataFrame([(7, "q", "new")], "id long, v string, w string")
    merge = LanceTable.forPath(spark, str(path)).merge(source, "target.v = source.v")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert stored(path) == [FIRST, SECOND, (7, "q    ", "new")]


def test_an_update_of_a_frame_pads(spark: SparkSession, table: str, path: Path) -> None:
    del table
    LanceTable.forPath(spark, str(path)).update("v = 'ab'", {"v": "'q'"})
    assert stored(path) == [(1, "q    ", "x"), SECOND]


def test_a_value_that_is_too_long_is_refused(spark: SparkSession, table: str, path: Path) -> None:
    with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"UPDATE {table} SET v = 'abcdef'")
    assert stored(path) == [FIRST, SECOND]
