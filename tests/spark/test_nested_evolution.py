"""Members added to structs, also inside arrays and maps, on every version of data files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lancelake

VERSIONS = ("2.1", "2.2")


@pytest.fixture(autouse=True)
def namespace(spark: SparkSession) -> Iterator[None]:
    """Have a namespace that goes with all its tables."""
    spark.sql("CREATE NAMESPACE lance.n")
    yield
    spark.sql("DROP NAMESPACE lance.n CASCADE")


def create(spark: SparkSession, version: str) -> None:
    """Create a table with a deleted row, nulls and nested columns."""
    spark.sql(
        "CREATE TABLE lance.n.t (id INT, st STRUCT<a: INT, in: STRUCT<x: INT>>, "
        "arr ARRAY<STRUCT<a: INT>>) "
        f"TBLPROPERTIES ('dataStorageVersion' = '{version}')"
    )
    spark.sql(
        "INSERT INTO lance.n.t VALUES "
        "(1, named_struct('a', 1, 'in', named_struct('x', 2)), array(named_struct('a', 3))), "
        "(2, NULL, NULL), (3, NULL, array())"
    )
    spark.sql("DELETE FROM lance.n.t WHERE id = 3")


@pytest.mark.parametrize("version", VERSIONS)
def test_members_are_added_in_sql(spark: SparkSession, warehouse: Path, version: str) -> None:
    create(spark, version)
    spark.sql("ALTER TABLE lance.n.t ADD COLUMNS (st.b STRING, st.in.y INT)")
    spark.sql("ALTER TABLE lance.n.t ADD COLUMN arr.element.b INT")
    rows = [row.asDict(recursive=True) for row in spark.table("lance.n.t").orderBy("id").collect()]
    assert rows == [
        {
            "id": 1,
            "st": {"a": 1, "in": {"x": 2, "y": None}, "b": None},
            "arr": [{"a": 3, "b": None}],
        },
        {"id": 2, "st": None, "arr": None},
    ]
    lancelake.LanceDataset(warehouse / "n" / "t.lance").validate()


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_add_members(spark: SparkSession, warehouse: Path, version: str) -> None:
    create(spark, version)
    frame = spark.sql(
        "SELECT 4 AS id, named_struct('a', 5, 'in', named_struct('x', 1), 'c', 6) AS st, "
        "array(named_struct('a', 0, 'c', 7)) AS arr"
    )
    place = str(warehouse / "n" / "t.lance")
    frame.write.format("lance").mode("append").option("mergeSchema", True).save(place)
    row = spark.table("lance.n.t").where("id = 4").first()
    assert row is not None
    assert row.st.asDict(recursive=True) == {"a": 5, "in": {"x": 1}, "c": 6}
    assert [item.asDict() for item in row.arr] == [{"a": 0, "c": 7}]


@pytest.mark.parametrize("version", VERSIONS)
def test_merges_add_members(spark: SparkSession, version: str) -> None:
    create(spark, version)
    spark.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO lance.n.t t USING "
        "(SELECT 1 AS id, named_struct('a', 9, 'in', named_struct('x', 1), 'c', 8) AS st) s "
        "ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET st = s.st WHEN NOT MATCHED THEN INSERT *"
    )
    row = spark.table("lance.n.t").where("id = 1").first()
    assert row is not None
    assert row.st.c == 8


def test_values_of_maps_get_members(spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE lance.n.t (m MAP<STRING, STRUCT<a: INT>>) "
        "TBLPROPERTIES ('dataStorageVersion' = '2.2')"
    )
    spark.sql("INSERT INTO lance.n.t VALUES (map('k', named_struct('a', 4)))")
    spark.sql("ALTER TABLE lance.n.t ADD COLUMN m.value.b INT")
    row = spark.table("lance.n.t").first()
    assert row is not None
    assert row.m["k"].asDict() == {"a": 4, "b": None}
