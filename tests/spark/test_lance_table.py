"""Tables changed from Spark programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake
from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    SchemaMismatchError,
    TableNotFoundError,
)
from lancelake.spark import LanceTable, write
from tests.support.official import Official


@pytest.fixture(params=[True, False], ids=["stable_row_ids", "addresses"])
def uri(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """Return a table of ten rows in two fragments."""
    place = str(tmp_path / "t.lance")
    write(people(spark, range(10)).repartition(2), place, stableRowIds=request.param)
    return place


def people(spark: SparkSession, ids: range, name: str = "n") -> DataFrame:
    """Return rows with an id, a name and a score."""
    rows = [(i, f"{name}{i}", i / 2) for i in ids]
    return spark.createDataFrame(rows, "id long, name string, score double")


def counted(done: DataFrame) -> int:
    """Return the count that a change reports."""
    return int(done.collect()[0][0])


def rows(uri: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table by id, after checking the table."""
    dataset = lancelake.LanceDataset(uri)
    dataset.validate()
    return sorted(tuple(row.values()) for row in dataset.to_table().to_pylist())


def test_an_upsert_changes_and_adds_rows(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(8, 12), "new")
    table = LanceTable.forPath(spark, uri).alias("t")
    done = (
        table.merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
        .collect()
    )
    assert done[0].asDict() == {
        "num_affected_rows": 4,
        "num_updated_rows": 2,
        "num_deleted_rows": 0,
        "num_inserted_rows": 2,
    }
    expected = [(i, f"n{i}" if i < 8 else f"new{i}", i / 2) for i in range(12)]
    assert rows(uri) == expected


def test_the_first_clause_whose_condition_holds_acts(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(5), "new")
    table = LanceTable.forPath(spark, uri)
    (
        table.merge(source, "target.id = source.id")
        .whenMatchedDelete("target.id = 0")
        .whenMatchedUpdate("target.id < 2", {"name": "concat(target.name, source.name)"})
        .whenMatchedUpdate("target.id = 2", {"score": f.lit(-1.0)})
        .whenNotMatchedBySourceUpdate("target.id = 8", {"name": "'lonely'"})
        .whenNotMatchedBySourceDelete("target.id = 9")
        .execute()
    )
    values = {row[0]: row[1:] for row in rows(uri)}
    assert sorted(values) == list(range(1, 9))
    assert values[1] == ("n1new1", 0.5)
    assert values[2] == ("n2", -1.0)
    assert values[3] == ("n3", 1.5)
    assert values[8] == ("lonely", 4.0)


def test_inserted_values_are_computed(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(20, 23), "new")
    table = LanceTable.forPath(spark, uri)
    (
        table.merge(source, "target.id = source.id")
        .whenNotMatchedInsert("source.id > 20", {"id": "source.id", "name": "upper(source.name)"})
        .execute()
    )
    assert rows(uri)[10:] == [(21, "NEW21", None), (22, "NEW22", None)]


def test_two_source_rows_for_one_row_are_refused(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(3)).union(people(spark, range(1)))
    merge = LanceTable.forPath(spark, uri).merge(source, "target.id = source.id")
    with pytest.raises(InvalidRequestError, match="Ambiguous"):
        merge.whenMatchedUpdateAll().execute()
    assert lancelake.LanceDataset(uri).version == 1


def test_columns_that_only_the_source_has_are_refused(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(3)).withColumn("extra", f.lit(1))
    merge = LanceTable.forPath(spark, uri).merge(source, "target.id = source.id")
    with pytest.raises(SchemaMismatchError, match="extra"):
        merge.whenMatchedUpdateAll().execute()


def test_columns_that_only_the_source_has_are_added_when_asked(
    spark: SparkSession, uri: str
) -> None:
    source = people(spark, range(9, 11)).withColumn("extra", f.lit(1))
    merge = LanceTable.forPath(spark, uri).merge(source, "target.id = source.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [row[3] for row in rows(uri)] == [None] * 9 + [1, 1]


def test_a_merge_that_adds_columns_casts_the_others(spark: SparkSession, uri: str) -> None:
    source = people(spark, range(9, 11)).withColumns({"id": f.expr("int(id)"), "extra": f.lit(1)})
    merge = LanceTable.forPath(spark, uri).merge(source, "target.id = source.id")
    merge.withSchemaEvolution().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert [(row[0], row[3]) for row in rows(uri)][8:] == [(8, None), (9, 1), (10, 1)]


def test_rows_are_deleted_where_a_condition_holds(spark: SparkSession, uri: str) -> None:
    done = LanceTable.forPath(spark, uri).delete(f.col("id") % 2 == 0)
    assert counted(done) == 5
    assert [row[0] for row in rows(uri)] == [1, 3, 5, 7, 9]


def test_rows_are_updated_where_a_condition_holds(spark: SparkSession, uri: str) -> None:
    done = LanceTable.forPath(spark, uri).update("id < 2", {"score": "score + id + 1"})
    assert counted(done) == 2
    assert [row[2] for row in rows(uri)][:3] == [1.0, 2.5, 1.0]


def test_updates_keep_the_ids_of_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    write(people(spark, range(10)).coalesce(1), place)
    LanceTable.forPath(spark, place).update("id = 3", {"name": "'x'"})
    result = lancelake.LanceDataset(place).to_table(columns=["id", "_rowid"]).to_pylist()
    assert all(row["id"] == row["_rowid"] for row in result)


def test_columns_are_added_renamed_changed_and_dropped(spark: SparkSession, uri: str) -> None:
    table = LanceTable.forPath(spark, uri)
    table.addColumns({"double": "score * 2"})
    table.renameColumn("double", "twice")
    table.alterColumn("twice", dataType="float")
    table.addColumns("empty string")
    table.dropColumns("name")
    shown = table.toDF().where("id = 3").collect()[0].asDict()
    assert shown == {"id": 3, "score": 1.5, "twice": 3.0, "empty": None}


def test_an_older_version_is_made_the_newest(spark: SparkSession, uri: str) -> None:
    table = LanceTable.forPath(spark, uri)
    table.delete()
    table.restoreToVersion(1)
    assert len(rows(uri)) == 10


def test_a_missing_table_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="nothing"):
        LanceTable.forPath(spark, str(tmp_path / "nothing"))


def test_a_table_that_exists_is_not_written_over(spark: SparkSession, uri: str) -> None:
    with pytest.raises(AlreadyExistsError):
        write(people(spark, range(1)), uri)


def test_a_numbered_write_is_committed_once(spark: SparkSession, uri: str) -> None:
    for _ in range(2):
        write(people(spark, range(20, 21)), uri, "append", txnAppId="app", txnVersion=7)
    assert [row[0] for row in rows(uri)] == [*range(10), 20]


def test_a_numbered_write_that_made_the_table_may_run_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = str(tmp_path / "new.lance")
    for _ in range(2):
        write(people(spark, range(3)), place, txnAppId="app", txnVersion=1)
    assert [row[0] for row in rows(place)] == [0, 1, 2]


def test_rows_of_a_condition_are_replaced(spark: SparkSession, uri: str) -> None:
    write(people(spark, range(2), "new"), uri, "overwrite", replaceWhere="id < 5")
    assert [row[:2] for row in rows(uri)][:3] == [(0, "new0"), (1, "new1"), (5, "n5")]


@pytest.mark.parametrize("zone", ["+01:00", "Europe/Berlin"])
def test_times_of_another_zone_keep_their_type(
    spark: SparkSession, tmp_path: Path, official_14: Official, zone: str
) -> None:
    place = str(tmp_path / "t.lance")
    at = pa.array([0, 1_000_000], pa.timestamp("us", zone))
    official_14.write(place, pa.table({"id": [1, 2], "at": at}))
    LanceTable.forPath(spark, place).update("id = 2", {"id": "3"})
    spark.sql(f"UPDATE lance.`{place}` SET at = at + INTERVAL 1 SECOND WHERE id = 1")
    source = spark.sql("SELECT 4L AS id, timestamp_micros(5) AS at").alias("s")
    merge = LanceTable.forPath(spark, place).merge(source, "target.id = s.id")
    merge.whenNotMatchedInsertAll().execute()
    stored = lancelake.LanceDataset(place).to_table()
    assert stored.schema.field("at").type == at.type
    times = zip(stored["id"].to_pylist(), stored["at"].cast(pa.int64()).to_pylist(), strict=True)
    assert sorted(times) == [(1, 1_000_000), (3, 1_000_000), (4, 5)]
