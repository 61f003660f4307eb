"""Benchmark of a Spark stream of upserts through the MemWAL, and with MERGE for each batch."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Comparison
from benchmarks.memwal import batch
from benchmarks.processes import print_result
from benchmarks.spark_runs import quiet_session
from lancelake.spark import merge_batches

_BATCHES = 100
_ROWS = 1000
_ROUNDS = 1
_TABLE_ROWS = 100_000
_FOLDER = tables.ROOT / "memwal-stream"


def main() -> None:
    """Measure both ways in turns."""
    spark = quiet_session()
    _prepare()
    through: list[float] = []
    merged: list[float] = []
    for _ in range(_ROUNDS):
        through.append(_timed(spark, _upserts))
        merged.append(_timed(spark, _merges))
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


def _prepare() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    (_FOLDER / "in.lance").parent.mkdir(parents=True)
    for number in range(_BATCHES):
        rows = batch(number * _ROWS // 2, _ROWS)
        lancelake.write_dataset(rows, _FOLDER / "in.lance", mode="append" if number else "create")


def _timed(spark: SparkSession, run: Callable[[SparkSession, Path], None]) -> float:
    place = _FOLDER / run.__name__
    shutil.rmtree(place, ignore_errors=True)
    lancelake.write_dataset(batch(0, _TABLE_ROWS), place / "t.lance").wal.initialize(buckets=2)
    start = time.perf_counter()
    run(spark, place)
    seconds = time.perf_counter() - start
    found = lancelake.dataset(place / "t.lance").wal.count_rows()
    if found != _TABLE_ROWS:
        raise AssertionError(found)
    return seconds


def _stream(spark: SparkSession, place: Path) -> object:
    options = {"startingVersion": "1", "maxVersionsPerTrigger": "1"}
    reader = spark.readStream.format("lance").options(**options)
    writer = reader.load(str(_FOLDER / "in.lance")).writeStream.trigger(availableNow=True)
    return writer.option("checkpointLocation", str(place / "checkpoint"))


def _upserts(spark: SparkSession, place: Path) -> None:
    writer = _stream(spark, place).format("lance").option("mode", "upsert")  # type: ignore[attr-defined]
    writer.option("mergeEvery", 25).start(str(place / "t.lance")).awaitTermination()


def _merges(spark: SparkSession, place: Path) -> None:
    merge = merge_batches(str(place / "t.lance"), ["id"])
    _stream(spark, place).foreachBatch(merge).start().awaitTermination()  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
