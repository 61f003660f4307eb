"""Spark reads by index what it reads by scan, and only that."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession, functions

import lancelake
from tests.support.searched_tables import add_segment
from tests.support.spark_rows import rows

FRAGMENTS = 20


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a table of twenty fragments, of which the last is not indexed."""
    place = str(tmp_path / "rows.lance")
    lancelake.write_dataset(rows(400), place, max_rows_per_file=20, data_storage_version="2.2")
    covered = set(range(FRAGMENTS - 1))
    add_segment(place, "id", "BTREE", fragments=covered)
    add_segment(place, "i", "BITMAP", fragments=covered)
    return place


def load(spark: SparkSession, path: str, **options: object) -> DataFrame:
    return spark.read.format("lance").options(**options).load(path)


def metric(frame: DataFrame, name: str) -> int:
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().head()
    return int(scan.metrics().apply(name).value())


def test_only_fragments_with_rows_are_read(spark: SparkSession, path: str) -> None:
    frame = load(spark, path).where("id IN (3, 45)").select("id", "s")
    assert sorted(row.id for row in frame.collect()) == [3, 45]
    # Two by the index, and the one that it does not cover.
    assert metric(frame, "numFragments") == 3
    assert metric(frame, "numFragmentsByIndex") == 2
    assert metric(frame, "numFragmentsSkipped") == FRAGMENTS - 3


def test_indices_can_be_left_aside(spark: SparkSession, path: str) -> None:
    frame = load(spark, path, useScalarIndex=False).where("id = 3").select("id")
    assert [row.id for row in frame.collect()] == [3]
    assert metric(frame, "numFragmentsSkipped") == 0


@pytest.mark.parametrize("condition", ["i = 3", "NOT (i = 3)", "i IS NULL", "i > 2 OR id = 7"])
def test_rows_are_those_of_a_scan(spark: SparkSession, path: str, condition: str) -> None:
    mine, scanned = (
        load(spark, path, useScalarIndex=use).where(condition) for use in (True, False)
    )
    expected = sorted(row.id for row in scanned.select("id").collect())
    assert sorted(row.id for row in mine.select("id").collect()) == expected
    assert mine.count() == len(expected)
    assert len(mine.select("id").limit(2).collect()) == min(2, len(expected))


def test_values_of_a_small_join_side_are_looked_up(spark: SparkSession, path: str) -> None:
    frame = load(spark, path)
    keys = spark.createDataFrame([(3, "a"), (45, "a"), (7, "b")], "key long, g string")
    few = functions.broadcast(keys.where("g = 'a'"))
    joined = frame.join(few, frame.id == keys.key).select("id", "s")
    assert sorted(row.id for row in joined.collect()) == [3, 45]
    leaves = joined._jdf.queryExecution().executedPlan().finalPhysicalPlan().collectLeaves()
    scans = [leaves.apply(n) for n in range(leaves.size())]
    values = [s for s in scans if s.metrics().contains("numFragmentsByIndex")]
    assert [int(s.metrics().apply("numFragmentsByIndex").value()) for s in values] == [2]


def test_rows_are_changed_by_index(spark: SparkSession, path: str) -> None:
    spark.sql(f"DELETE FROM lance.`{path}` WHERE id = 3")
    spark.sql(f"UPDATE lance.`{path}` SET i = 77 WHERE id IN (45, 399)")
    load(spark, path).where("id IN (50, 51)").selectExpr("id", "88 AS i").createOrReplaceTempView(
        "changes"
    )
    spark.sql(
        f"MERGE INTO lance.`{path}` t USING changes c ON t.id = c.id "
        "WHEN MATCHED THEN UPDATE SET i = c.i"
    )
    table = lancelake.dataset(path)
    for use in (True, False):
        stored = table.to_table(["id"], "i IN (77, 88) OR id = 3", use_scalar_index=use)
        assert sorted(stored["id"].to_pylist()) == [45, 50, 51, 399]


def test_damaged_index_is_named(spark: SparkSession, path: str) -> None:
    for file in Path(path).glob("_indices/*/page_lookup.lance"):
        file.unlink()
    with pytest.raises(Exception, match=r"id_btree.*page_lookup.lance is missing.*useScalarIndex"):
        load(spark, path).where("id = 3").collect()
