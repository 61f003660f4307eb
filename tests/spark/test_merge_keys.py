"""The key filter that a merge leaves for merges at the same time."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.format.operations import KeyExistenceFilter, Update
from lancelake.spark import LanceTable, merge_batches, write
from lancelake.storage.location import Location

COLUMNS = "id long, k string, v long, gone boolean"
KEYED: dict[str, str | Callable[[], Column]] = {
    "plain": "t.id = s.id",
    "either order": "s.id = t.id",
    "no case": "T.ID = S.Id",
    "not": "t.id = s.id AND NOT s.gone",
    "null test": "t.id = s.id AND s.v IS NOT NULL",
    "alternatives": "t.id = s.id AND (s.v > 1 OR t.v > 1)",
    "inside a text": "t.id = s.id AND s.k <> ' or '",
    "function": "t.id = s.id AND coalesce(s.v, 0) >= 0",
    "null safe": "t.id <=> s.id",
    "other type": "t.id = cast(s.id AS int)",
    "columns": lambda: (f.col("t.id") == f.col("s.id")) & ~f.col("s.gone"),
}
UNKEYED = {
    "range": "t.id > s.id",
    "alternatives": "t.id = s.id OR t.k = s.k",
    "negation": "NOT (t.id = s.id)",
    "remainder": "t.id % 10 = s.id",
    "constant": "t.id = 1",
    "same side": "t.id = t.v",
}


@pytest.fixture
def uri(spark: SparkSession, tmp_path: Path) -> str:
    """Return a table of two rows."""
    place = str(tmp_path / "t.lance")
    write(people(spark, 1, 2), place)
    return place


def people(spark: SparkSession, *ids: int) -> DataFrame:
    """Return rows with these ids."""
    return spark.createDataFrame([(i, f"k{i}", i, False) for i in ids], COLUMNS)


def newest(uri: str) -> Snapshot:
    """Return the newest version."""
    return open_snapshot(Location.parse(uri), Latest())


def key_filter(uri: str) -> KeyExistenceFilter | None:
    """Return the key filter of the newest version."""
    transaction = newest(uri).transaction
    assert transaction is not None
    assert isinstance(transaction.operation, Update)
    return transaction.operation.inserted_rows


def key_names(uri: str) -> list[str]:
    """Return the columns of the newest version's key filter."""
    result = key_filter(uri)
    by_id = newest(uri).manifest.schema.by_id()
    return [] if result is None else [by_id[i].name for i in result.field_ids]


def upsert(spark: SparkSession, uri: str, condition: str | Column, *ids: int) -> None:
    table = LanceTable.forPath(spark, uri).alias("t")
    merge = table.merge(people(spark, *ids).alias("s"), condition)
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


@pytest.mark.parametrize("case", KEYED)
def test_a_merge_of_a_frame_carries_its_key(spark: SparkSession, uri: str, case: str) -> None:
    result = KEYED[case]
    condition = result if isinstance(result, str) else result()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        upsert(spark, uri, condition, 2, 3)
    assert key_names(uri) == ["id"]


@pytest.mark.parametrize("case", [name for name in KEYED if name != "columns"])
def test_a_merge_of_sql_carries_its_key(spark: SparkSession, uri: str, case: str) -> None:
    people(spark, 2, 3).createOrReplaceTempView("incoming")
    spark.sql(
        f"MERGE INTO lance.`{uri}` t USING incoming s ON {KEYED[case]} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert key_names(uri) == ["id"]


def test_both_ways_carry_the_same_filter(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.lance")
    write(people(spark, 1, 2), other)
    upsert(spark, uri, "t.id = s.id AND t.k = s.k", 2, 3)
    people(spark, 2, 3).createOrReplaceTempView("incoming")
    spark.sql(
        f"MERGE INTO lance.`{other}` t USING incoming s ON t.id = s.id AND t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert key_names(uri) == ["id", "k"]
    assert key_filter(uri) == key_filter(other)


@pytest.mark.parametrize("case", UNKEYED)
def test_a_merge_without_a_key_warns(spark: SparkSession, uri: str, case: str) -> None:
    merge = LanceTable.forPath(spark, uri).alias("t")
    clause = merge.merge(people(spark, 3).alias("s"), UNKEYED[case]).whenNotMatchedInsertAll()
    with pytest.warns(UserWarning, match="no key filter") as said:
        clause.execute()
    assert len([w for w in said if "no key filter" in str(w.message)]) == 1
    assert str(said[0].message).count(uri) == 1


def test_a_merge_that_inserts_nothing_needs_no_key(spark: SparkSession, uri: str) -> None:
    table = LanceTable.forPath(spark, uri).alias("t")
    merge = table.merge(people(spark, 2).alias("s"), "t.id > s.id AND s.id = 2")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        merge.whenMatchedUpdate(set={"v": "0"}).execute()


def test_batches_carry_their_keys(spark: SparkSession, uri: str) -> None:
    merge_batches(uri, ["id", "k"], txn_app_id="app")(people(spark, 2, 3), 0)
    assert key_names(uri) == ["id", "k"]
