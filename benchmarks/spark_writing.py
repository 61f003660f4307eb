"""Benchmark of Spark appends to Lance tables, compared with Parquet in the same session.

python -m benchmarks.spark_writing
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.spark_runs import quiet_session, report

_ROWS = 8_000_000
_ROUNDS = 5
_COLUMNS = (
    "id",
    "rand(1) AS a",
    "concat('name-', id % 1000) AS b",
    "pmod(id * 2654435761, 1099511627776) AS c",
)


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    folder = tables.ROOT / "spark-writing"
    report(cases(folder), parser.parse_args().only)


def cases(folder: Path) -> Iterator[Case]:
    """Yield appends to a table of a few rows, which is created for each."""
    spark = quiet_session()
    computed = spark.range(0, _ROWS, 1, 8).selectExpr(*_COLUMNS)
    yield _append("append 8 M computed rows", spark, folder, computed)
    stored = str(folder / "source.parquet")
    computed.write.mode("overwrite").parquet(stored)
    yield _append("append 8 M rows of a file", spark, folder, spark.read.parquet(stored))
    spark.stop()


def _append(name: str, spark: SparkSession, folder: Path, frame: DataFrame) -> Case:
    lance, parquet = str(folder / "target.lance"), str(folder / "target.parquet")

    def start_anew() -> None:
        few = spark.range(0, 10, 1, 1).selectExpr(*_COLUMNS)
        for form, path in (("lance", lance), ("parquet", parquet)):
            shutil.rmtree(path, ignore_errors=True)
            few.write.format(form).mode("append").save(path)

    return Case(
        name=name,
        target=1.1,
        before=start_anew,
        ours=lambda: frame.write.format("lance").mode("append").save(lance),
        official=lambda: frame.write.format("parquet").mode("append").save(parquet),
        rounds=_ROUNDS,
    )


if __name__ == "__main__":
    main()
