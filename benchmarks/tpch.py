"""Benchmark of the queries of TPC-H on Lance tables, compared with a peer in the same session.

python -m benchmarks.tpch --scale 0.1 --only 5 6 --rounds 3
.interop/spark-4.2/bin/python -m benchmarks.tpch --peer delta
.interop/spark-4.1/bin/python -m benchmarks.tpch --peer iceberg
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import lancelake
from benchmarks import spark_peers, tables
from benchmarks.measure import Case, Comparison, compare
from benchmarks.processes import print_result, skipping
from benchmarks.spark_peers import PEERS, Peer
from benchmarks.tpch_data import tables as tpch_tables
from benchmarks.tpch_queries import QUERIES

SCALE = 1.0
_TARGET, _TOTAL_TARGET = 1.2, 1.0
_FILE_ROWS = 1_000_000
_TABLES = tuple(tpch_tables(0))


def main() -> None:
    """Report every query and the total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=SCALE)
    parser.add_argument("--peer", choices=tuple(PEERS), default="parquet")
    parser.add_argument("--only", type=int, nargs="+", choices=tuple(QUERIES), metavar="QUERY")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=tables.ROOT)
    options = parser.parse_args()
    folder = options.folder / f"tpch-{options.scale:g}"
    peer = PEERS[options.peer]
    with skipping():
        spark = spark_peers.session_with(peer, folder)
        _prepare(folder, options.scale)
        _prepare_peer(spark, peer, folder)
        found: list[Comparison] = []
        for case in cases(spark, peer, folder, options.rounds, options.only or QUERIES):
            found.append(compare(case))
            print_result(found[-1])
        print_result(_total(found, peer, options.scale))
        spark.stop()


def cases(
    spark: SparkSession, peer: Peer, folder: Path, rounds: int, queries: Iterable[int]
) -> Iterator[Case]:
    """Yield a case per query; both formats must give the same rows."""
    lance, theirs = spark.newSession(), spark.newSession()
    for name in _TABLES:
        ours = lance.read.format("lance").load(str(folder / f"{name}.lance"))
        ours.createOrReplaceTempView(name)
        spark_peers.read(peer, theirs, folder, name).createOrReplaceTempView(name)
    for number in queries:
        yield Case(
            name=f"TPC-H query {number}",
            target=_TARGET,
            ours=partial(_answer, lance, QUERIES[number]),
            official=partial(_answer, theirs, QUERIES[number]),
            rounds=rounds,
            peer=peer.label,
        )


def _answer(spark: SparkSession, query: str) -> list[Any]:
    return [tuple(row) for row in spark.sql(query).collect()]


def _total(results: list[Comparison], peer: Peer, scale: float) -> Comparison:
    return Comparison(
        name=f"TPC-H, scale factor {scale:g}, {len(results)} queries",
        target=_TOTAL_TARGET,
        ours_s=sum(result.ours_s for result in results),
        official_s=sum(result.official_s for result in results),
        rounds=min(result.rounds for result in results),
        peer=peer.label,
    )


def _prepare(folder: Path, scale: float) -> None:
    """Write the tables as Lance and as Parquet, in files of the same rows."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, batches in tpch_tables(scale).items():
        lance, parquet = folder / f"{name}.lance", folder / f"{name}.parquet"
        if lance.exists() and parquet.exists():
            continue
        rows = pa.Table.from_batches(batches)
        lancelake.write_dataset(rows, lance, mode="overwrite", max_rows_per_file=_FILE_ROWS)
        parquet.mkdir(exist_ok=True)
        for number, start in enumerate(range(0, rows.num_rows, _FILE_ROWS)):
            pq.write_table(rows.slice(start, _FILE_ROWS), parquet / f"{number}.parquet")


def _prepare_peer(spark: SparkSession, peer: Peer, folder: Path) -> None:
    for name in _TABLES:
        rows = spark_peers.read(PEERS["parquet"], spark, folder, name)
        spark_peers.write(peer, rows, folder, name)


if __name__ == "__main__":
    main()
