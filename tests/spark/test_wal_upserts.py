"""Upserts from Spark through the MemWAL: batches, streams, and merges."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

import lancelake.pylance as lance
from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedError,
)
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.memwal import wal_keys
from lancelake.memwal.status import read_entries, wal_status
from lancelake.spark import LanceTable, upsert_batches
from lancelake.spark.jobs.wal_rows import bucket_column
from lancelake.spark.streaming.sink import LanceStreamWriter
from tests.support.lance_errors import refused
from tests.support.memwal_tables import newest, rows

BUCKETS = 4
Pairs = dict[int, str | None]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a table with a MemWAL."""
    ds = lance.write_dataset(rows(*((n, "base") for n in range(10))), tmp_path / "t.lance")
    ds.wal.initialize(buckets=BUCKETS)
    return str(tmp_path / "t.lance")


def _frame(spark: SparkSession, *pairs: tuple[int, str | None]) -> DataFrame:
    return spark.createDataFrame(list(pairs), "id long, name string")


def _latest(path: str) -> Pairs:
    rows = lance.dataset(path).wal.to_table().to_pylist()
    by_key = {row["id"]: row["name"] for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def _entries(path: str) -> int:
    """Count the WAL entries with rows."""
    base = newest(path)
    regions = wal_status(base).regions
    return sum(
        not entry.is_sentinel for r in regions for entry in read_entries(base, r.region, after=0)
    )


def _upsert(frame: DataFrame, path: str, **options: str) -> None:
    writer = frame.write.format("lance").mode("append").option("mode", "upsert")
    writer.options(**options).save(path)


def test_a_frame_is_upserted_with_one_entry_for_each_bucket(spark: SparkSession, path: str) -> None:
    changed = [(n, "new") for n in range(5, 100)]
    _upsert(_frame(spark, *changed).repartition(3), path)
    expected: Pairs = {**dict.fromkeys(range(10), "base"), **dict(changed)}
    assert _latest(path) == expected
    assert _entries(path) == BUCKETS
    assert lance.dataset(path).version == 2


def test_a_write_with_an_identity_is_written_once(spark: SparkSession, path: str) -> None:
    for name in ("first", "again"):
        _upsert(_frame(spark, (1, name)), path, txnAppId="app", txnVersion="3")
    _upsert(_frame(spark, (2, "older")), path, txnAppId="app", txnVersion="4")
    assert (_latest(path)[1], _latest(path)[2]) == ("first", "older")
    assert _entries(path) == 2


def test_rows_are_deleted_and_ordered_by_options(spark: SparkSession, path: str) -> None:
    changes = [(1, "a", "I", 1), (1, "b", "I", 3), (1, "c", "I", 2), (2, None, "D", 1)]
    changes += [(3, "x", "I", 1), (3, None, "D", 2), (4, None, "D", 1), (4, "y", "I", 2)]
    frame = spark.createDataFrame(changes, "id long, name string, op string, at int")
    _upsert(frame, path, deleteWhen="op = 'D'", sequenceBy="at")
    rows = _latest(path)
    assert (rows[1], rows[4]) == ("b", "y")
    assert 2 not in rows
    assert 3 not in rows


def test_rows_that_do_not_fit_are_refused(spark: SparkSession, path: str) -> None:
    extra = spark.createDataFrame([(1, "a", 2)], "id long, name string, other int")
    for frame, options, match in (
        (extra, {}, "no column other"),
        (extra, {"deleteWhen": "id > 0"}, "no column other"),
        (_frame(spark, (1, "a")).select("id"), {}, "column name is missing"),
    ):
        with refused(SchemaMismatchError, match=match):
            _upsert(frame, path, **options)
    with refused(LanceTableError, match="key column id has nulls"):
        _upsert(spark.createDataFrame([(None, "a")], "id long, name string"), path)
    with refused(InvalidRequestError, match="unknown mode 'upsort'"):
        _frame(spark, (1, "a")).write.format("lance").option("mode", "upsort").save(path)
    with refused(InvalidRequestError, match="needs the option mode=upsert"):
        writer = _frame(spark, (1, "a")).write.format("lance").mode("append")
        writer.option("sequenceBy", "id").save(path)
    assert _entries(path) == 0


def test_a_table_without_a_mem_wal_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    lance.write_dataset(rows((1, "a")), tmp_path / "t")
    with refused(InvalidRequestError, match="the table has no MemWAL"):
        _upsert(_frame(spark, (1, "b")), str(tmp_path / "t"))


@pytest.mark.parametrize("kind", ["boolean", "tinyint", "smallint", "int", "bigint", "string"])
def test_spark_computes_the_buckets_of_the_table_format(spark: SparkSession, kind: str) -> None:
    values = spark.range(-100, 100).select(f.expr(f"CAST(id AS {kind}) AS k"))
    (field,) = from_arrow(values.toArrow().schema).fields
    table = values.select(bucket_column(field, 7).alias("b"), "k").toArrow()
    own = wal_keys.buckets(table.column("k").combine_chunks(), 7)
    assert table.column("b").to_pylist() == own.tolist()


def _source(folder: Path, batch: int, pairs: list[tuple[int, str]]) -> None:
    folder.mkdir(exist_ok=True)
    lines = "\n".join(json.dumps({"id": key, "name": name}) for key, name in pairs)
    file = folder / f"{batch:03}.json"
    file.write_text(lines, encoding="utf-8")
    # Spark reads files in the order of their times.
    os.utime(file, (1_000_000_000 + batch, 1_000_000_000 + batch))


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema("id long, name string").option("maxFilesPerTrigger", 1)
    return reader.json(str(folder))


def _run(stream: DataFrame, path: str, checkpoint: Path, **options: str) -> None:
    writer = stream.writeStream.format("lance").option("mode", "upsert").options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start(path)
    query.awaitTermination()
    assert query.exception() is None


def test_a_stream_upserts_each_batch_once(spark: SparkSession, path: str, tmp_path: Path) -> None:
    for batch in range(3):
        _source(tmp_path / "in", batch, [(n, f"b{batch}") for n in range(batch, 40)])
    _run(_stream(spark, tmp_path / "in"), path, tmp_path / "checkpoint")
    assert _entries(path) == 3 * BUCKETS
    assert _latest(path) == {0: "b0", 1: "b1", **dict.fromkeys(range(2, 40), "b2")}
    # A driver that died before it recorded the batch repeats it.
    (tmp_path / "checkpoint/commits/2").unlink()
    (tmp_path / "checkpoint/commits/.2.crc").unlink(missing_ok=True)
    _run(_stream(spark, tmp_path / "in"), path, tmp_path / "checkpoint")
    assert _entries(path) == 3 * BUCKETS


def test_a_stream_merges_after_some_batches(spark: SparkSession, path: str, tmp_path: Path) -> None:
    for batch in range(4):
        _source(tmp_path / "in", batch, [(n, f"b{batch}") for n in range(20)])
    _run(_stream(spark, tmp_path / "in"), path, tmp_path / "checkpoint", mergeEvery="2")
    rows = lance.dataset(path).to_table().to_pylist()
    assert {row["id"]: row["name"] for row in rows} == dict.fromkeys(range(20), "b3")
    assert len(rows) == 20
    assert all(not region.tail_rows for region in wal_status(newest(path)).regions)


def test_a_function_for_batches_deletes_too(spark: SparkSession, path: str, tmp_path: Path) -> None:
    _source(tmp_path / "in", 0, [(1, "gone"), (2, "kept")])
    upsert = upsert_batches(path, deleteWhen="name = 'gone'")
    writer = _stream(spark, tmp_path / "in").writeStream.foreachBatch(upsert)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert 1 not in _latest(path)
    assert _latest(path)[2] == "kept"


def test_sql_sets_up_merges_and_collects(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE lance.wal_u (id BIGINT NOT NULL, name STRING)")
    spark.sql("INSERT INTO lance.wal_u VALUES (1, 'base')")
    call = "CALL lance.system.init_wal('wal_u', buckets => 2, key => 'id')"
    assert spark.sql(call).columns == ["version"]
    _source(tmp_path / "in", 0, [(1, "new"), (2, "new"), (3, "new")])
    query = _stream(spark, tmp_path / "in").writeStream.option("mode", "upsert")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).toTable("lance.wal_u").awaitTermination()
    status = spark.sql("CALL lance.system.wal_status('wal_u')").collect()
    assert sum(row.tail_rows for row in status) == 3
    assert spark.table("lance.wal_u").count() == 1
    assert spark.table("lance.wal_u.latest").count() == 3
    assert spark.sql("CALL lance.system.merge_wal('wal_u')").head().regions == 0
    merged = spark.sql("CALL lance.system.merge_wal('wal_u', flush => true)").head()
    assert (merged.rows_inserted, merged.rows_updated, merged.rows_deleted) == (2, 1, 0)
    assert spark.table("lance.wal_u").count() == 3
    call = "CALL lance.system.collect_wal('wal_u', older_than => '0s', dry_run => true)"
    assert all(row.is_dry_run for row in spark.sql(call).collect())
    assert (warehouse / "wal_u.lance").exists()


def test_a_lance_table_has_the_same_methods(spark: SparkSession, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.utf8())])
    lance.write_dataset(pa.table([[1], ["base"]], schema=schema), tmp_path / "t")
    table = LanceTable.forPath(spark, str(tmp_path / "t"))
    table.initializeWal(buckets=2, key="id")
    counts = table.upsert(_frame(spark, (1, "new"), (2, "new")))
    assert counts.rows == 2
    assert table.latest().count() == 2
    assert table.latest("flushed").count() == 1
    assert {row.tail_rows for row in table.walStatus().collect()} <= {1, 2}
    assert table.mergeWal(flush=True).head().rows_updated == 1
    assert table.toDF().count() == 2
    assert sum(row.files_removed for row in table.collectWal(0, dryRun=True).collect()) >= 0


def test_a_plain_sink_writes_each_batch_once(path: str) -> None:
    schema = t.StructType(
        [t.StructField("id", t.LongType()), t.StructField("name", t.StringType())]
    )
    options = {"path": path, "mode": "upsert", "txnAppId": "query"}
    writer = LanceStreamWriter(schema, options, overwrite=False)
    for name in ("first", "again"):
        batch = pa.record_batch({"id": [1, 2, 50], "name": [name] * 3})
        writer.commit([writer.write(iter([batch]))], 7)
    assert {key: _latest(path)[key] for key in (1, 2, 50)} == dict.fromkeys((1, 2, 50), "first")
    assert lance.dataset(path).version == 2
    with refused(UnsupportedError, match="need a Spark session"):
        LanceStreamWriter(schema, {**options, "sequenceBy": "id"}, overwrite=False)
    with refused(TableNotFoundError):
        LanceStreamWriter(schema, {**options, "path": f"{path}x"}, overwrite=False)
