"""Types that Spark declares and the format stores otherwise, and names in another case."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession
from pyspark.sql import types as t

import lancelake
from lancelake.errors import InvalidRequestError
from lancelake.spark.values.spark_types import spark_field, stored_schema


@pytest.fixture(scope="module", autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.ty")
    yield
    spark.sql("DROP NAMESPACE lance.ty CASCADE")


def test_a_vector_column_is_declared_by_a_property(spark: SparkSession, warehouse: Path) -> None:
    spark.sql(
        "CREATE TABLE lance.ty.v (id INT, v ARRAY<FLOAT>) "
        "TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2')"
    )
    spark.sql("INSERT INTO lance.ty.v VALUES (1, array(1, 2))")
    rows = lancelake.LanceDataset(warehouse / "ty" / "v.lance").to_table()
    assert pa.types.is_fixed_size_list(rows.schema.field("v").type)
    assert spark.table("lance.ty.v").first().v == [1.0, 2.0]


def test_a_vector_column_is_declared_by_the_metadata_of_a_frame(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([([1.0, 2.0],)], "v array<float>")
    frame = frame.withMetadata("v", {"arrow.fixed-size-list.size": 2})
    place = str(tmp_path / "t.lance")
    frame.write.format("lance").save(place)
    stored = lancelake.LanceDataset(place).schema.field("v").type
    assert pa.types.is_fixed_size_list(stored)


def test_vectors_of_spark_ml_come_back(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    rows = [(1, Vectors.dense([1.0, 2.0])), (2, Vectors.sparse(3, {1: 5.0})), (3, None)]
    frame = spark.createDataFrame(rows, ["id", "features"])
    frame.write.format("lance").save(place)
    answer = spark.read.format("lance").load(place).orderBy("id")
    assert answer.schema["features"].dataType == frame.schema["features"].dataType
    assert [tuple(row) for row in answer.collect()] == rows


def test_intervals_in_arrays_keep_their_fields(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    frame = spark.sql("SELECT array(INTERVAL '3' DAY) AS a, map('k', INTERVAL '2' DAY) AS m")
    frame.write.format("lance").save(place)
    answer = spark.read.format("lance").load(place)
    assert answer.schema["a"].dataType.simpleString() == "array<interval day>"
    assert answer.first().a == [timedelta(days=3)]


def test_metadata_of_a_table_loads_no_module() -> None:
    udt = '{"type": "udt", "pyClass": "antigravity.Kind", "sqlType": "long"}'
    field = pa.field("a", pa.int64(), metadata={"lancelake:spark_type": udt})
    assert spark_field(field).dataType == t.LongType()


def test_a_size_is_refused_for_a_column_that_is_no_array() -> None:
    field = t.StructField("a", t.LongType(), metadata={"arrow.fixed-size-list.size": 2})
    with pytest.raises(InvalidRequestError):
        stored_schema(t.StructType([field]))


def test_names_follow_the_setting_of_the_session(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE lance.ty.Mixed (id INT)")
    spark.sql("INSERT INTO lance.TY.mixed VALUES (1)")
    assert spark.table("lance.ty.MIXED").count() == 1
    assert spark.sql("SELECT count(*) FROM lance.ty.MIXED.history").first()[0] == 2
    spark.conf.set("spark.sql.caseSensitive", True)
    try:
        with pytest.raises(AnalysisException):
            spark.table("lance.ty.mixed")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_any_condition_selects_the_rows_to_replace(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE lance.ty.r (id INT, s STRING)")
    spark.sql("INSERT INTO lance.ty.r SELECT id, 'old' FROM range(6)")
    spark.sql(
        "INSERT INTO lance.ty.r REPLACE WHERE id % 2 = 0 AND upper(s) = 'OLD' VALUES (8, 'Old')"
    )
    assert sorted(row.id for row in spark.table("lance.ty.r").collect()) == [1, 3, 5, 8]
