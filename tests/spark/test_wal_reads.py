"""Tables with a MemWAL, read from Spark: SQL, data frames, and each freshness."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from tests.support.lance_errors import refused
from tests.support.memwal_tables import rows


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> tuple[lance.LanceDataset, str]:
    """Return a table with merged, flushed and durable rows."""
    path = str(tmp_path_factory.mktemp("fresh") / "t.lance")
    ds = lance.write_dataset(rows(*((n, "base") for n in range(20))), path, max_rows_per_file=5)
    ds.wal.initialize(buckets=3)
    with ds.wal.writer() as w:
        w.put(rows((0, "merged"), (20, "merged")))
    ds.wal.merge()
    with ds.wal.writer() as w:
        w.put(rows((1, "flushed"), (21, "flushed")))
        w.delete([2])
    last = ds.wal.writer()
    last.put(rows((1, "durable"), (22, "durable")))
    last.delete([3, 21])
    last.close(flush=False)
    return ds, path


def _expected(ds: lance.LanceDataset, freshness: str) -> list[tuple[object, ...]]:
    rows = ds.wal.to_table(freshness=freshness).sort_by("id").to_pylist()
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("freshness", ["base", "flushed", "durable"])
def test_a_frame_has_the_rows_of_its_freshness(
    spark: SparkSession, fresh: tuple[lance.LanceDataset, str], freshness: str
) -> None:
    ds, path = fresh
    frame = spark.read.format("lance").option("freshness", freshness).load(path)
    assert sorted(tuple(row) for row in frame.collect()) == _expected(ds, freshness)


def test_a_filter_does_not_bring_replaced_rows_back(
    spark: SparkSession, fresh: tuple[lance.LanceDataset, str]
) -> None:
    _, path = fresh
    frame = spark.read.format("lance").option("freshness", "durable").load(path)
    answer = frame.where("name IN ('base', 'flushed') AND id < 5 OR upper(name) = 'DURABLE'")
    assert sorted(row.id for row in answer.select("id").collect()) == [1, 4, 22]
    plan = frame.where("name = 'base'")._jdf.queryExecution().toString()
    assert "latest rows of" in plan


def test_sql_reads_the_latest_rows_by_name(
    spark: SparkSession, warehouse: Path, fresh: tuple[lance.LanceDataset, str]
) -> None:
    ds, path = fresh
    shutil.copytree(path, warehouse / "wal_t.lance")
    rows = spark.sql("SELECT * FROM lance.wal_t.latest").collect()
    assert sorted(tuple(row) for row in rows) == _expected(ds, "durable")
    flushed = spark.read.option("freshness", "flushed").table("lance.wal_t.latest")
    assert flushed.count() == len(_expected(ds, "flushed"))
    joined = "SELECT count(*) FROM lance.wal_t.latest l JOIN lance.wal_t b ON l.id = b.id"
    assert spark.sql(joined).head() == (19,)


def test_a_version_has_no_latest_rows(
    spark: SparkSession, fresh: tuple[lance.LanceDataset, str]
) -> None:
    _, path = fresh
    reader = spark.read.format("lance").option("freshness", "durable").option("version", 1)
    with refused(LanceTableError, match="unknown option version"):
        reader.load(path)


def test_a_key_of_two_columns_and_a_nested_column_are_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.utf8())])
    keys = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.utf8(), nullable=False)]
    schema = pa.schema([*keys, pa.field("s", inner)])

    def made(a: int, b: str, x: int) -> pa.Table:
        return pa.table([[a], [b], [{"x": x, "y": f"y{x}"}]], schema=schema)

    ds = lance.write_dataset(made(1, "p", 1), tmp_path / "t.lance")
    ds.wal.initialize(buckets=2, key=["a", "b"])
    with ds.wal.writer() as w:
        w.put(pa.concat_tables([made(1, "p", 2), made(1, "q", 3)]))
    reader = spark.read.format("lance").option("freshness", "durable")
    frame = reader.load(str(tmp_path / "t.lance"))
    assert sorted(r[0] for r in frame.select("s.x").collect()) == [2, 3]
    assert [r[0] for r in frame.where("s.x = 3").select("s.y").collect()] == ["y3"]
