"""Benchmark of MERGE on Lance tables, compared with a peer and with rewriting Parquet.

.interop/spark-4.2/bin/python -m benchmarks.spark_merging --peer delta
.interop/spark-4.1/bin/python -m benchmarks.spark_merging --peer iceberg
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import spark_peers, tables
from benchmarks.measure import Case
from benchmarks.processes import skipping
from benchmarks.spark_peers import PEERS, Peer
from benchmarks.spark_runs import report

ROWS = 10_000_000
_ROUNDS = 3
_COLUMNS = (
    "id",
    "rand(1) AS a",
    "concat('name-', id % 1000) AS b",
    "pmod(id * 2654435761, 1099511627776) AS c",
    "sha2(CAST(id AS STRING), 256) AS d",
)
_OPTIONS = {
    "delta": {"delta.enableDeletionVectors": "true"},
    "iceberg": {"format-version": "2", "write.merge.mode": "merge-on-read"},
    "parquet": {},
}
_TARGETS = {"delta": 0.5, "iceberg": 1.0}
_MERGE = """MERGE INTO {target} AS t USING late AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--peer", choices=tuple(_TARGETS), default="delta")
    parser.add_argument("--rows", type=int, default=ROWS)
    options = parser.parse_args()
    folder = tables.ROOT / f"spark-merging-{options.rows}"
    folder.mkdir(parents=True, exist_ok=True)
    with skipping():
        report(cases(folder, PEERS[options.peer], options.rows), options.only)


def cases(folder: Path, peer: Peer, rows: int) -> Iterator[Case]:
    """Yield the merge beside the peer, and with Delta beside a rewrite of Parquet.

    Tables are put back after every merge.
    """
    spark = spark_peers.session_with(peer, folder)
    parquet = PEERS["parquet"]
    _prepare(spark, folder, rows, {peer.format: peer, "parquet": parquet})
    spark.read.parquet(str(folder / "late.parquet")).createOrReplaceTempView("late")
    ours, name = folder / "now.lance", f"MERGE of 1 % into {rows:,} rows"
    yield Case(
        name=name,
        target=_TARGETS[peer.format],
        before=partial(_put_back, spark, folder, peer),
        ours=lambda: _merged(spark, f"lance.`{ours}`"),
        official=lambda: _merged(spark, spark_peers.table_name(peer, folder, "now")),
        rounds=_ROUNDS,
        peer=peer.label,
    )
    if peer.format == "delta":
        yield Case(
            name=name,
            target=1.0,
            before=partial(_put_back, spark, folder, parquet),
            ours=lambda: _merged(spark, f"lance.`{ours}`"),
            official=lambda: _rewritten(spark, folder),
            rounds=_ROUNDS,
            peer=f"a rewrite of {parquet.label}",
        )
    spark.stop()


def _merged(spark: SparkSession, target: str) -> None:
    spark.sql(_MERGE.format(target=target)).collect()


def _rewritten(spark: SparkSession, folder: Path) -> None:
    """Do without row-level changes: write what the table is after the merge."""
    late = spark.table("late")
    before = spark.read.parquet(str(folder / "now.parquet"))
    after = before.join(late, "id", "left_anti").unionByName(late)
    after.write.mode("overwrite").parquet(str(folder / "after.parquet"))


def _prepare(spark: SparkSession, folder: Path, count: int, peers: dict[str, Peer]) -> None:
    changed_count = count * 9 // 1000
    rows = spark.range(0, count, 1, 8).selectExpr(*_COLUMNS)
    if not (folder / "first.lance").exists():
        rows.write.format("lance").mode("append").save(str(folder / "first.lance"))
    for peer in peers.values():
        spark_peers.write(peer, rows, folder, "first", **_OPTIONS[peer.format])
    step = count // changed_count
    changed = spark.range(0, changed_count * step, step, 1)
    new = spark.range(count, count + count // 1000, 1, 1)
    late: DataFrame = changed.union(new).selectExpr(*_COLUMNS)
    spark_peers.write(peers["parquet"], late, folder, "late")


def _put_back(spark: SparkSession, folder: Path, peer: Peer) -> None:
    """Make both tables what they were at first. Files never change, so links to them will do."""
    _linked(folder / "first.lance", folder / "now.lance")
    if peer.format == "iceberg":
        # Its metadata has absolute paths, so the table itself goes back to its first snapshot.
        _iceberg_put_back(spark, folder, peer)
    else:
        _linked(
            spark_peers.table_folder(peer, folder, "first"),
            spark_peers.table_folder(peer, folder, "now"),
        )


def _iceberg_put_back(spark: SparkSession, folder: Path, peer: Peer) -> None:
    if not spark_peers.table_folder(peer, folder, "now").exists():
        rows = spark_peers.read(peer, spark, folder, "first")
        spark_peers.write(peer, rows, folder, "now", **_OPTIONS[peer.format])
    name = spark_peers.table_name(peer, folder, "now")
    catalog, _, table = name.partition(".")
    first = spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").first()
    spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table}', {first[0]})")


def _linked(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)


if __name__ == "__main__":
    main()
