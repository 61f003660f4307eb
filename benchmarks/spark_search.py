"""Benchmark of batch kNN on Spark, against a loop over official Lance and a cross join.

python -m benchmarks.spark_search
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import lance
import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql import types as t

from benchmarks import vector_search
from benchmarks.measure import Case
from benchmarks.spark_runs import quiet_session, report
from lancelake.spark import LanceTable

_ROWS = 1_000_000
_QUERIES = 5000
_JOINED = 5
_K = 10
_PROBES = 10
_SEED = 7


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, default=_ROWS)
    given = parser.parse_args()
    report(cases(given.rows), given.only)


def cases(rows: int) -> Iterator[Case]:
    """Yield batch kNN by an index and a loop over pylance, then exact kNN and a cross join."""
    spark = quiet_session()
    uri = vector_search.indexed("IVF_PQ", rows)
    queries = np.random.default_rng(_SEED).random((_QUERIES, 128), dtype=np.float32)
    frame = spark.createDataFrame(pd.DataFrame({"asked": queries.tolist()})).coalesce(1).cache()
    frame.count()
    table, official = LanceTable.forPath(spark, uri), lance.dataset(uri)
    near = {"column": "v", "k": _K, "nprobes": _PROBES}

    def loop() -> int:
        names = ["c0", "_distance"]
        return sum(official.to_table(names, nearest={**near, "q": q}).num_rows for q in queries)

    yield Case(
        name=f"batch kNN of {_QUERIES:,} queries, and a loop over pylance",
        target=1.0,
        ours=lambda: table.search(frame, "v", _K, columns=["c0"], nprobes=_PROBES).count(),
        official=loop,
        rounds=3,
    )
    few = spark.createDataFrame(pd.DataFrame({"asked": queries[:_JOINED].tolist()})).coalesce(1)
    yield Case(
        name=f"exact kNN of {_JOINED} queries, and a cross join with a UDF",
        target=0.05,
        ours=lambda: table.search(few, "v", _K, columns=["c0"], useIndex=False).count(),
        official=lambda: _crossed(few, spark.read.format("lance").load(uri)).count(),
        rounds=1,
    )
    spark.stop()


def _crossed(queries: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the nearest rows of each query by distances of all pairs."""

    @fn.udf(t.FloatType())
    def distance(one: list[float], other: list[float]) -> float:
        return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))

    numbered = queries.withColumn("query", fn.monotonically_increasing_id())
    pairs = numbered.crossJoin(rows.select("c0", "v"))
    scored = pairs.select("query", "c0", distance("asked", "v").alias("d"))
    nearest = Window.partitionBy("query").orderBy("d")
    return scored.withColumn("rank", fn.row_number().over(nearest)).where(f"rank <= {_K}")


if __name__ == "__main__":
    main()
