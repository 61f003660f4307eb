"""The rules that protect rows hold for tables in an object store as well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, PlaceNotAllowedError, SchemaMismatchError
from lancelake.format.operations import Update
from lancelake.spark import LanceTable, error_of, register
from tests.support.lance_errors import refused
from tests.support.s3_server import S3Server, s3_server

CATALOG = "remote"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(scope="module")
def root(spark: SparkSession, s3: S3Server) -> str:
    """Return the folder of a catalog in a bucket."""
    conf = spark.sparkContext._conf
    for name, value in s3.storage_options.items():
        conf.set(f"spark.sql.catalog.{CATALOG}.storage.{name}", value)
    place = f"s3://{s3.new_bucket()}/warehouse"
    register(spark, CATALOG, place)
    spark.sql(f"CREATE NAMESPACE {CATALOG}.db")
    return place


@pytest.fixture
def options(s3: S3Server) -> dict[str, str]:
    """Return the options of reads and writes by path."""
    return {f"storage.{name}": value for name, value in s3.storage_options.items()}


@pytest.fixture
def table(spark: SparkSession, root: str) -> Iterator[str]:
    """Return the name of a table with four rows."""
    name = f"{CATALOG}.db.t"
    spark.sql(f"CREATE TABLE {name} (id INT, v CHAR(4), st STRUCT<a: INT>)")
    spark.sql(f"INSERT INTO {name} SELECT id, 'v', named_struct('a', 1) FROM range(1, 5)")
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def rows(spark: SparkSession, table: str) -> list[tuple[Any, ...]]:
    """Return ids and texts."""
    return [tuple(row) for row in spark.sql(f"SELECT id, v FROM {table} ORDER BY id").collect()]


def place(spark: SparkSession, table: str) -> str:
    return LanceTable.forName(spark, table).uri


ALL = [(n, "v   ") for n in range(1, 5)]


@pytest.mark.parametrize("condition", ["NOT s.gone", "(s.gone OR s.v IS NOT NULL)"])
def test_a_merge_carries_its_key(
    spark: SparkSession, s3: S3Server, table: str, condition: str
) -> None:
    source = spark.sql("SELECT 4 AS id, 'x' AS v, false AS gone UNION ALL SELECT 5, 'y', false")
    target = LanceTable.forName(spark, table)
    merge = target.alias("t").merge(source.alias("s"), f"t.id = s.id AND {condition}")
    merge = merge.whenMatchedUpdate(set={"v": "s.v"})
    merge.whenNotMatchedInsert(values={"id": "s.id", "v": "s.v"}).execute()
    assert rows(spark, table) == [*ALL[:3], (4, "x   "), (5, "y   ")]
    transaction = lance.dataset(
        target.uri, storage_options=s3.storage_options
    )._snapshot.transaction
    assert transaction is not None
    assert isinstance(transaction.operation, Update)
    assert transaction.operation.inserted_rows is not None


@pytest.mark.parametrize("command", ["DELETE FROM few", "UPDATE few SET id = 0"])
def test_a_view_is_not_changed(spark: SparkSession, table: str, command: str) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW few AS SELECT * FROM {table} WHERE id >= 3")
    with pytest.raises(Exception, match="which is a view or another query"):
        spark.sql(command)
    assert rows(spark, table) == ALL


def test_a_char_column_is_updated(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 'c' WHERE v = 'v' AND id = 1")
    assert rows(spark, table) == [(1, "c   "), *ALL[1:]]


def test_a_string_that_is_not_utf8_is_refused(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s STRING")
    with pytest.raises(Exception, match="not UTF-8"):
        spark.sql(f"INSERT INTO {table} (id, s) SELECT 9, CAST(X'FF00' AS STRING)")
    with pytest.raises(Exception, match="not UTF-8"):
        spark.sql(f"UPDATE {table} SET s = CAST(X'FF00' AS STRING)")
    assert rows(spark, table) == ALL


@pytest.mark.parametrize("values", ["'12' AS id", "true AS id", "7 AS id, 1 AS st"])
def test_an_append_follows_store_assignment(
    spark: SparkSession, table: str, options: dict[str, str], values: str
) -> None:
    write = spark.sql(f"SELECT {values}").write.format("lance").mode("append").options(**options)
    with refused(SchemaMismatchError, match="Cannot safely cast"):
        write.save(place(spark, table))
    assert rows(spark, table) == ALL


def test_the_last_member_of_a_struct_stays(spark: SparkSession, table: str) -> None:
    with pytest.raises(Exception, match="would be left without fields"):
        spark.sql(f"ALTER TABLE {table} DROP COLUMN st.a")


def test_rows_outside_of_replace_where_are_refused(
    spark: SparkSession, table: str, options: dict[str, str]
) -> None:
    write = spark.sql("SELECT 2 AS id").write.format("lance").mode("overwrite").options(**options)
    with refused(InvalidRequestError, match="do not match the condition of the overwrite"):
        write.option("replaceWhere", "id = 1").save(place(spark, table))
    with pytest.raises(Exception, match="do not match the condition of the overwrite"):
        spark.sql("SELECT 2 AS id").writeTo(table).overwrite(f.col("id") == 1)
    assert rows(spark, table) == ALL


def test_replaced_times_are_in_the_sessions_zone(
    spark: SparkSession, root: str, s3: S3Server, options: dict[str, str]
) -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    times = [datetime(2023, 11, day, hour, tzinfo=tokyo) for day, hour in ((15, 20), (16, 1))]
    uri = f"{root}/db/times.lance"
    column = pa.array(times, pa.timestamp("us", "UTC"))
    lance.write_dataset(pa.table({"ts": column}), uri, storage_options=s3.storage_options)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        write = spark.sql("SELECT TIMESTAMP '2023-11-17 00:00:00' AS ts").write.format("lance")
        write = write.mode("overwrite").options(**options)
        write.option("replaceWhere", "ts > '2023-11-16 00:00:00'").save(uri)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    result = lance.dataset(uri, storage_options=s3.storage_options).to_table()["ts"].to_pylist()
    assert sorted(result) == [times[0], datetime(2023, 11, 17, tzinfo=tokyo)]


def run_stream(source: DataFrame, checkpoint: Path) -> None:
    """Read everything that is there."""
    writer = source.select("id").writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_a_stream_ends_on_a_table_that_was_created_again(
    spark: SparkSession, table: str, options: dict[str, str], tmp_path: Path
) -> None:
    uri = place(spark, table)
    stream = spark.readStream.format("lance").options(**options)
    run_stream(stream.load(uri), tmp_path / "checkpoint")
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} (id INT, v CHAR(4), st STRUCT<a: INT>)")
    for value in range(3):
        spark.sql(f"INSERT INTO {table} (id) VALUES ({value})")
    with pytest.raises(Exception, match="another table"):
        run_stream(stream.load(uri), tmp_path / "checkpoint")


def test_a_local_base_is_not_read(
    spark: SparkSession, root: str, s3: S3Server, options: dict[str, str], tmp_path: Path
) -> None:
    local = lance.write_dataset(pa.table({"a": [1, 2]}), str(tmp_path / "local.lance"))
    uri = f"{root}/clone.lance"
    local.shallow_clone(uri, 1, storage_options=s3.storage_options)
    read = spark.read.format("lance").options(**options)
    with pytest.raises(Exception, match="another kind of store"):
        read.load(uri).collect()
    with refused(PlaceNotAllowedError, match="another kind of store"):
        LanceTable.forPath(spark, uri, **options).delete("a = 1")
    assert len(read.option("confineTo", str(tmp_path)).load(uri).collect()) == 2


def test_an_endpoint_that_is_no_url_is_refused(spark: SparkSession, root: str) -> None:
    options = {"storage.endpoint": "nonsense", "storage.region": "r"}
    with pytest.raises(Exception, match="is not a URL") as caught:
        spark.read.format("lance").options(**options).load(f"{root}/t.lance").collect()
    assert isinstance(error_of(caught.value), InvalidRequestError)
