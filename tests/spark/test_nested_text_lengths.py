"""CHAR and VARCHAR inside of structs, arrays and maps: every way to write checks their lengths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lancelake

TABLE = "lance.nested_letters"
KEEPS = "named_struct('a', 'ab', 'c', 'x'), array('ab'), map('k', 'v')"
LONG = {"s": "named_struct('a', 'abcd', 'c', 'x')", "l": "array('abcd')", "m": "map('abcd', 'v')"}


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of a table of one row."""
    spark.sql(
        f"CREATE TABLE {TABLE} (id BIGINT, s STRUCT<a: VARCHAR(3), c: CHAR(4)>, "
        "l ARRAY<VARCHAR(3)>, m MAP<VARCHAR(3), CHAR(4)>)"
    )
    spark.sql(f"INSERT INTO {TABLE} VALUES (1, {KEEPS})")
    yield TABLE
    spark.sql(f"DROP TABLE {TABLE}")


@pytest.fixture
def path(table: str, warehouse: Path) -> Path:
    """Return where the table is stored."""
    del table
    return warehouse / "nested_letters.lance"


@pytest.mark.parametrize("column", LONG)
def test_values_that_are_too_long_are_refused(
    spark: SparkSession, table: str, path: Path, column: str
) -> None:
    before = lancelake.dataset(path).version
    source = f"(SELECT {{}}L AS id, {LONG[column]} AS {column}) s ON t.id = s.id"
    commands = [
        f"INSERT INTO {table} ({column}) VALUES ({LONG[column]})",
        f"UPDATE {table} SET {column} = {LONG[column]}",
        f"MERGE INTO {table} t USING {source.format(1)} "
        f"WHEN MATCHED THEN UPDATE SET t.{column} = s.{column}",
        f"MERGE INTO {table} t USING {source.format(7)} "
        f"WHEN NOT MATCHED THEN INSERT (id, {column}) VALUES (s.id, s.{column})",
    ]
    for command in commands:
        with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
            spark.sql(command)
    rows = spark.sql(f"SELECT 5L AS id, {LONG[column]} AS {column}")
    with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
        rows.write.format("lance").mode("append").save(str(path))
    assert lancelake.dataset(path).version == before


def test_one_member_is_checked_and_padded(spark: SparkSession, table: str, path: Path) -> None:
    with pytest.raises(PySparkException, match="EXCEED_LIMIT_LENGTH"):
        spark.sql(f"UPDATE {table} SET s.a = 'abcd'")
    spark.sql(f"UPDATE {table} SET s.c = 'y', m = map('k', 'w')")
    (row,) = lancelake.dataset(path).to_table(columns=["s", "m"]).to_pylist()
    assert row == {"s": {"a": "ab", "c": "y   "}, "m": [("k", "w   ")]}
