"""Columns of new tables are nullable, except where their definition says NOT NULL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lancelake
from lancelake.spark import LanceTable, merge_batches, write

LITERALS = "1 n", "named_struct('p', 1, 'q', array(1)) s"
OPTIONAL = pa.schema(
    [
        ("n", pa.int32()),
        ("s", pa.struct([("p", pa.int32()), ("q", pa.list_(pa.field("element", pa.int32())))])),
    ]
)


def literals(spark: SparkSession) -> DataFrame:
    """Return rows without nulls, as Spark knows."""
    frame = spark.range(2).selectExpr(*LITERALS)
    assert not any(field.nullable for field in frame.schema)
    return frame


def save(frame: DataFrame, place: str) -> None:
    frame.write.format("lance").save(place)


def save_with_a_condition(frame: DataFrame, place: str) -> None:
    frame.write.format("lance").mode("overwrite").option("replaceWhere", "n = 1").save(place)


def replace_columns(frame: DataFrame, place: str) -> None:
    frame.selectExpr("n o").write.format("lance").save(place)
    (frame.write.format("lance").mode("overwrite").option("overwriteSchema", "true").save(place))


def merge(frame: DataFrame, place: str) -> None:
    merge_batches(place, ["n"], txn_app_id="a")(frame.limit(1), 0)


def create_by_name(frame: DataFrame, place: str) -> None:
    frame.writeTo(f"lance.`{place}`").create()


@pytest.mark.parametrize(
    "create", [save, write, save_with_a_condition, replace_columns, merge, create_by_name]
)
def test_columns_of_a_frame_are_nullable(
    spark: SparkSession, tmp_path: Path, create: Callable[[DataFrame, str], None]
) -> None:
    place = str(tmp_path / "t.lance")
    create(literals(spark), place)
    dataset = lancelake.dataset(place)
    assert dataset.schema == OPTIONAL
    assert dataset.to_table().column("n").to_pylist()[0] == 1


@pytest.mark.parametrize("by_name", [False, True])
def test_columns_of_a_stream_are_nullable(
    spark: SparkSession, tmp_path: Path, *, by_name: bool
) -> None:
    source, place = str(tmp_path / "source.lance"), str(tmp_path / "t.lance")
    write(spark.range(2), source)
    stream = spark.readStream.format("lance").load(source).selectExpr(*LITERALS).writeStream
    stream = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    query = stream.toTable(f"lance.`{place}`") if by_name else stream.start(place, "lance")
    query.awaitTermination()
    assert lancelake.dataset(place).schema == OPTIONAL


def test_columns_that_a_write_adds_are_nullable(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    save(literals(spark).select("n"), place)
    literals(spark).write.format("lance").mode("append").option("mergeSchema", "true").save(place)
    assert lancelake.dataset(place).schema == OPTIONAL


def test_columns_that_a_merge_adds_are_nullable(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    save(literals(spark).select("n"), place)
    merge = LanceTable.forPath(spark, place).merge(literals(spark), "target.n = source.n + 1")
    merge.withSchemaEvolution().whenNotMatchedInsertAll().execute()
    assert lancelake.dataset(place).schema == OPTIONAL


def test_a_definition_keeps_its_not_null(spark: SparkSession, tmp_path: Path) -> None:
    columns = "n int NOT NULL, s struct<p: int NOT NULL>"
    place = str(tmp_path / "t.lance")
    LanceTable.create(spark, place, columns)
    spark.sql(f"CREATE TABLE lance.`{place}2` ({columns}) USING lance")
    for found in (lancelake.dataset(place), lancelake.dataset(f"{place}2")):
        assert not found.schema.field("n").nullable
        assert not found.schema.field("s").type.field("p").nullable
