"""Rows written by path are stored by the same rules of Spark as rows written by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.errors import LanceTableError, SchemaMismatchError
from lancelake.spark import LanceTable, error_of, write
from tests.support.lance_errors import refused

COLUMNS = "i INT, b BIGINT, d DATE, v VARCHAR(3), c CHAR(4), st STRUCT<a: INT>"


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """Return the name of an empty table."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lance.sa")
    spark.sql("DROP TABLE IF EXISTS lance.sa.t")
    spark.sql(f"CREATE TABLE lance.sa.t ({COLUMNS})")
    yield "lance.sa.t"
    spark.sql("DROP TABLE IF EXISTS lance.sa.t")


@pytest.fixture
def place(spark: SparkSession, table: str) -> str:
    """Return the path of the same table."""
    return LanceTable.forName(spark, table).uri


def append(frame: DataFrame, place: str, **options: object) -> None:
    """Append by path."""
    given = {key: str(value) for key, value in options.items()}
    frame.write.format("lance").mode("append").options(**given).save(place)


def condition_of(caught: pytest.ExceptionInfo[Exception]) -> str:
    """Return the name that Spark has for an error."""
    match = re.search(r"\[([A-Z_.]+)\]", str(caught.value))
    return match[1] if match else str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        "'12' AS i",
        "true AS b",
        "5 AS d",
        "'abcdef' AS v",
        "'abcdef' AS c",
        "3000000000 AS i",
        "named_struct('a', 'x') AS st",
    ],
)
def test_rows_that_a_write_by_name_refuses_are_refused(
    spark: SparkSession, table: str, place: str, values: str
) -> None:
    frame = spark.sql(f"SELECT {values}")
    with pytest.raises((PySparkException, SchemaMismatchError)) as by_path:
        append(frame, place)
    with pytest.raises(PySparkException) as by_name:
        frame.writeTo(table).append()
    assert condition_of(by_path) == condition_of(by_name)
    assert spark.table(table).isEmpty()


def test_values_that_fit_are_cast_as_spark_casts_them(
    spark: SparkSession, table: str, place: str
) -> None:
    frame = spark.sql("SELECT 7L AS i, 1.6D AS b, TIMESTAMP '2026-01-31 23:00:00' AS d, 5 AS v")
    append(frame, place)
    frame.writeTo(table).append()
    first, second = spark.table(table).collect()
    assert first == second
    assert (first.i, first.b, first.d, first.v) == (7, 1, date(2026, 1, 31), "5")


def test_char_values_are_padded(spark: SparkSession, table: str, place: str) -> None:
    append(spark.sql("SELECT 'ab' AS c"), place)
    assert lancelake.LanceDataset(place).to_table()["c"].to_pylist() == ["ab  "]


def test_the_policy_is_the_sessions(spark: SparkSession, place: str) -> None:
    frame = spark.sql("SELECT 12L AS i")
    append(frame, place)
    spark.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
    try:
        with refused(SchemaMismatchError, match="CANNOT_SAFELY_CAST"):
            append(frame, place)
    finally:
        spark.conf.unset("spark.sql.storeAssignmentPolicy")
    assert lancelake.LanceDataset(place).to_table()["i"].to_pylist() == [12]


def test_overwrites_follow_the_same_rules(spark: SparkSession, place: str) -> None:
    with refused(SchemaMismatchError, match="CANNOT_SAFELY_CAST"):
        write(spark.sql("SELECT '12' AS i"), place, "overwrite")


def test_names_match_without_case(spark: SparkSession, table: str, place: str) -> None:
    append(spark.sql("SELECT 1 AS I, 2L AS B"), place, mergeSchema=True)
    (row,) = spark.table(table).collect()
    assert (row.i, row.b) == (1, 2)
    assert lancelake.LanceDataset(place).schema.names[:2] == ["i", "b"]


def test_names_match_with_case_if_the_session_is_case_sensitive(
    spark: SparkSession, place: str
) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with refused(SchemaMismatchError, match="does not have: I"):
            append(spark.sql("SELECT 1 AS I"), place)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize("case_sensitive", ["true", "false"])
@pytest.mark.parametrize("columns", [("i", "I"), ("x", "X")])
def test_no_columns_are_added_that_differ_only_in_case(
    spark: SparkSession, table: str, place: str, columns: tuple[str, str], case_sensitive: str
) -> None:
    frame = spark.createDataFrame([(1, 2)], ", ".join(f"`{name}` int" for name in columns))
    spark.conf.set("spark.sql.caseSensitive", case_sensitive)
    try:
        with refused(SchemaMismatchError, match="differ only in case"):
            append(frame, place, mergeSchema=True)
        with refused(LanceTableError, match="differ only in case"):
            frame.writeTo(table).option("mergeSchema", "true").append()
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert lancelake.LanceDataset(place).version == 1


def test_a_new_table_has_names_that_the_session_distinguishes(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([(1, 2)], "x int, X int")
    with refused(SchemaMismatchError, match="differ only in case"):
        write(frame, str(tmp_path / "new.lance"))


def test_missing_columns_are_null(spark: SparkSession, table: str, place: str) -> None:
    append(spark.sql("SELECT 1 AS i"), place)
    assert spark.table(table).collect()[0].asDict() == {
        **dict.fromkeys(("b", "d", "v", "c", "st")),
        "i": 1,
    }


def test_vectors_are_appended(spark: SparkSession, tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    place = str(tmp_path / "v.lance")
    lancelake.write_dataset(pa.table({"id": [1], "vector": vectors}), place)
    append(spark.sql("SELECT 2L AS id, array(3.5D, 4.5D) AS vector"), place)
    stored: Any = lancelake.LanceDataset(place).to_table()
    assert stored["vector"].to_pylist() == [[1.0, 2.0], [3.5, 4.5]]
    assert stored.schema.field("vector").type == vectors.type


@pytest.mark.parametrize(
    ("values", "problem"),
    [("'12' AS i", "does not accept values of type string"), ("'abcdef' AS v", "more than 3")],
)
def test_streams_do_not_store_what_writes_refuse(
    spark: SparkSession, place: str, tmp_path: Path, values: str, problem: str
) -> None:
    source = str(tmp_path / "source.lance")
    lancelake.write_dataset(pa.table({"n": [1]}), source)
    rows = spark.readStream.format("lance").load(source).selectExpr(values)
    frame = rows.writeStream.format("lance").trigger(availableNow=True)
    with pytest.raises((PySparkException, LanceTableError)) as caught:
        query = frame.option("checkpointLocation", str(tmp_path / "cp")).start(place)
        query.awaitTermination()
    assert problem in str(error_of(caught.value) or caught.value)
    assert lancelake.LanceDataset(place).count_rows() == 0
