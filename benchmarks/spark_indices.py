"""Benchmark of Spark reads and merges by an index, compared with Parquet in the same session.

python -m benchmarks.spark_indices --only join
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

import lancelake
from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.spark_runs import quiet_session, report
from lancelake.spark import LanceTable

_ROWS = 10_000_000
_FRAGMENT_ROWS = 1_000_000
_SEED = 20_260_101
_STEP = 7919
_KEYS = 1000
_POINTS = 20
_ROUNDS = 7
_SHORT_ROUNDS = 41
_MERGE = """MERGE INTO lance.`{target}` AS t USING late AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"""


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    folder = tables.ROOT / "spark-indices"
    folder.mkdir(parents=True, exist_ok=True)
    report(cases(folder), parser.parse_args().only)


def cases(folder: Path) -> Iterator[Case]:
    """Yield each question to the indexed table, and to Parquet of the same rows."""
    spark = quiet_session()
    _prepare(spark, folder)
    lance = spark.read.format("lance").load(str(folder / "indexed.lance"))
    parquet, ordered = (spark.read.parquet(str(folder / f"{n}.parquet")) for n in ("any", "sorted"))
    points = [number * _STEP % _ROWS for number in range(_POINTS)]
    for name, target, peer in (("Parquet", 0.5, parquet), ("sorted Parquet", 1.0, ordered)):
        yield Case(
            name=f"point filter by BTREE, and {name}",
            target=target,
            peer=name,
            ours=_each(points, partial(_point, lance)),
            official=_each(points, partial(_point, peer)),
            rounds=_SHORT_ROUNDS,
        )
    keys = _keys(spark)
    for name, target, peer in (("Parquet", 0.5, parquet), ("sorted Parquet", 1.0, ordered)):
        yield Case(
            name=f"join with {_KEYS:,} keys by BTREE, and {name}",
            target=target,
            peer=name,
            ours=partial(_joined, lance, keys),
            official=partial(_joined, peer, keys),
            rounds=_ROUNDS,
        )
    yield _merging(spark, folder)
    yield _building(spark, folder)
    spark.stop()


def _each(values: list[int], ask: Callable[[int], object]) -> Callable[[], object]:
    """Return a function that asks about the next of some values each time."""
    following = itertools.cycle(values)
    return lambda: ask(next(following))


def _point(frame: DataFrame, number: int) -> object:
    return frame.where(fn.col("id") == number).collect()


def _keys(spark: SparkSession) -> DataFrame:
    """Return keys that a filter chooses, since only then Spark pushes them into a read."""
    every = spark.range(0, 2 * _KEYS, 1, 1).selectExpr(f"id * {_STEP} % {_ROWS} AS key", "id % 2 g")
    path = tables.ROOT / "spark-indices" / "keys.parquet"
    if not path.exists():
        every.write.parquet(str(path))
    return spark.read.parquet(str(path)).where("g = 1")


def _joined(frame: DataFrame, keys: DataFrame) -> object:
    joined = frame.join(fn.broadcast(keys), frame["id"] == keys["key"])
    return joined.agg(fn.count("*"), fn.max("v"), fn.max("s")).collect()


def _merging(spark: SparkSession, folder: Path) -> Case:
    """Compare a merge of few keys with one into the same table without an index."""
    ours, theirs = folder / "now-indexed.lance", folder / "now-plain.lance"
    _keys(spark).selectExpr("key AS id", "0.5D AS v").createOrReplaceTempView("late")
    return Case(
        name=f"MERGE of {_KEYS:,} keys by BTREE, and without an index",
        target=0.5,
        peer="Lancelake without an index",
        before=partial(_put_back, ours, theirs),
        ours=lambda: spark.sql(_MERGE.format(target=ours)).collect(),
        official=lambda: spark.sql(_MERGE.format(target=theirs)).collect(),
        rounds=_ROUNDS,
    )


def _building(spark: SparkSession, folder: Path) -> Case:
    ours, theirs = folder / "now-plain.lance", folder / "now-embedded.lance"

    def before() -> None:
        _put_back(ours)
        shutil.rmtree(theirs, ignore_errors=True)
        shutil.copytree(folder / "plain.lance", theirs, copy_function=os.link)

    def on_executors() -> object:
        LanceTable.forPath(spark, str(ours)).createIndex("id").collect()
        return lancelake.dataset(str(ours)).count_rows("id < 1000")

    def embedded() -> object:
        table = lancelake.dataset(str(theirs))
        table.create_scalar_index("id", "BTREE")
        return lancelake.dataset(str(theirs)).count_rows("id < 1000")

    return Case(
        name="build of a BTREE on local[2], and embedded",
        target=1.0,
        peer="Lancelake embedded",
        before=before,
        ours=on_executors,
        official=embedded,
        rounds=3,
    )


def _prepare(spark: SparkSession, folder: Path) -> None:
    plain, indexed = folder / "plain.lance", folder / "indexed.lance"
    if not plain.exists():
        schema = pa.schema([("id", pa.int64()), ("v", pa.float64()), ("s", pa.string())])
        reader = pa.RecordBatchReader.from_batches(schema, _batches(schema))
        lancelake.write_dataset(reader, str(plain), max_rows_per_file=_FRAGMENT_ROWS)
    if not indexed.exists():
        shutil.copytree(plain, indexed, copy_function=os.link)
        lancelake.dataset(str(indexed)).create_scalar_index("id", "BTREE")
    rows = spark.read.format("lance").load(str(plain))
    for name, chosen in (("any", rows), ("sorted", rows.orderBy("id"))):
        if not (folder / f"{name}.parquet").exists():
            chosen.write.parquet(str(folder / f"{name}.parquet"))


def _batches(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows whose ids come in no order."""
    chance = np.random.default_rng(_SEED)
    ids = chance.permutation(_ROWS)
    for start in range(0, _ROWS, _FRAGMENT_ROWS):
        part = ids[start : start + _FRAGMENT_ROWS]
        texts = pa.array(part).cast(pa.string())
        columns = [pa.array(part), pa.array(chance.random(len(part))), texts]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _put_back(*tables_now: Path) -> None:
    """Make tables what they were at first. Files are never changed, so links to them will do."""
    for now in tables_now:
        shutil.rmtree(now, ignore_errors=True)
        first = now.with_stem(now.stem.removeprefix("now-"))
        shutil.copytree(first, now, copy_function=os.link)


if __name__ == "__main__":
    main()
