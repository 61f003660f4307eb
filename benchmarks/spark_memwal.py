"""Benchmark of a Spark stream of upserts through the MemWAL, and with MERGE for each batch."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Comparison
from benchmarks.memwal import batch
from benchmarks.processes import print_result
from benchmarks.spark_runs import quiet_session
from lancelake.spark import merge_batches

_BATCHES = 100
_WARM_BATCHES = 5
_ROWS = 1000
_ROUNDS = 1
_TABLE_ROWS = 100_000
_FOLDER = tables.ROOT / "memwal-stream"
_FEW, _ALL = _FOLDER / "few", _FOLDER / "all"


def main() -> None:
    """Measure both ways in turns."""
    spark = quiet_session()
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _prepare(_FEW, _WARM_BATCHES)
    _prepare(_ALL, _BATCHES)
    through: list[float] = []
    merged: list[float] = []
    # The first batches of a session mostly wait for Java's compiler and for new workers.
    _timed(spark, _upserts, _FEW)
    _timed(spark, _merges, _FEW)
    for _ in range(_ROUNDS):
        through.append(_timed(spark, _upserts, _ALL))
        merged.append(_timed(spark, _merges, _ALL))
    print_result(
        Comparison(
            name=f"stream of {_BATCHES} batches of {_ROWS:,} rows, merged every 25 batches",
            target=1.0,
            ours_s=statistics.median(through),
            official_s=statistics.median(merged),
            rounds=_ROUNDS,
            note="the peer is MERGE for each batch",
        )
    )
    spark.stop()


def _prepare(folder: Path, batches: int) -> None:
    """Write the files of a stream, which Spark reads in the order of their times."""
    folder.mkdir(parents=True)
    for number in range(batches):
        path = folder / f"{number:03}.parquet"
        pq.write_table(batch(number * _ROWS // 2, _ROWS), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def _timed(
    spark: SparkSession, run: Callable[[SparkSession, Path, Path], None], source: Path
) -> float:
    place = _FOLDER / run.__name__
    shutil.rmtree(place, ignore_errors=True)
    lancelake.write_dataset(batch(0, _TABLE_ROWS), place / "t.lance").wal.initialize(buckets=2)
    start = time.perf_counter()
    run(spark, place, source)
    seconds = time.perf_counter() - start
    found = lancelake.dataset(place / "t.lance").wal.count_rows()
    if found != _TABLE_ROWS:
        raise AssertionError(found)
    return seconds


def _stream(spark: SparkSession, place: Path, source: Path) -> DataStreamWriter:
    reader = spark.readStream.schema("id long, name string, value double")
    rows = reader.option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = rows.writeStream.trigger(availableNow=True)
    return writer.option("checkpointLocation", str(place / "checkpoint"))


def _upserts(spark: SparkSession, place: Path, source: Path) -> None:
    writer = _stream(spark, place, source).format("lance").option("mode", "upsert")
    writer.option("mergeEvery", 25).start(str(place / "t.lance")).awaitTermination()


def _merges(spark: SparkSession, place: Path, source: Path) -> None:
    merge = merge_batches(str(place / "t.lance"), ["id"])
    _stream(spark, place, source).foreachBatch(merge).start().awaitTermination()


if __name__ == "__main__":
    main()
