"""Benchmark of the queries of TPC-H on Lance tables, compared with Parquet in the same session.

python -m benchmarks.tpch --scale 0.1 --only "query 5" --rounds 3
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import lancelake
from benchmarks import tables
from benchmarks.measure import Case, Comparison, compare
from benchmarks.spark_runs import print_result, quiet_session
from benchmarks.tpch_data import tables as tpch_tables
from benchmarks.tpch_queries import QUERIES

_TARGET, _TOTAL_TARGET = 1.2, 1.0
_FILE_ROWS = 1_000_000


def main() -> None:
    """Report every query and the total."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.5)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=tables.ROOT)
    options = parser.parse_args()
    folder = options.folder / f"tpch-{options.scale:g}"
    _prepare(folder, options.scale)
    spark = quiet_session()
    found: list[Comparison] = []
    for case in cases(spark, folder, options.rounds):
        if options.only in case.name:
            found.append(compare(case))
            print_result(found[-1])
    print_result(_total(found, options.scale))
    spark.stop()


def cases(spark: SparkSession, folder: Path, rounds: int) -> Iterator[Case]:
    """Yield a case per query; both formats must give the same rows."""
    lance, parquet = (_with_views(spark, folder, format) for format in ("lance", "parquet"))
    for number, text in QUERIES.items():
        yield Case(
            name=f"TPC-H query {number}",
            target=_TARGET,
            ours=partial(_answer, lance, text),
            official=partial(_answer, parquet, text),
            rounds=rounds,
        )


def _with_views(spark: SparkSession, folder: Path, format: str) -> SparkSession:
    """Return a session whose views are the tables in a format."""
    found = spark.newSession()
    for path in folder.glob(f"*.{format}"):
        found.read.format(format).load(str(path)).createOrReplaceTempView(path.stem)
    return found


def _answer(spark: SparkSession, query: str) -> list[Any]:
    return [tuple(row) for row in spark.sql(query).collect()]


def _total(results: list[Comparison], scale: float) -> Comparison:
    return Comparison(
        name=f"TPC-H, scale factor {scale:g}, {len(results)} queries",
        target=_TOTAL_TARGET,
        ours_s=sum(result.ours_s for result in results),
        official_s=sum(result.official_s for result in results),
        rounds=min(result.rounds for result in results),
    )


def _prepare(folder: Path, scale: float) -> None:
    """Write the tables in both formats, in files of the same rows."""
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


if __name__ == "__main__":
    main()
