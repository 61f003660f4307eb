"""Benchmark of Spark MERGE with concurrent writers that append at a steady rate.

The peer is the same MERGE on a table without concurrent appends.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from benchmarks.contention import LOADS, Landed, appending, compared, fresh_table, keys, measured
from benchmarks.measure import Comparison
from benchmarks.processes import print_result
from benchmarks.spark_runs import quiet_session

_LIBRARY = "lancelake.pylance"
_SECONDS = 20.0
_TARGET = 2.0
_MERGE = """MERGE INTO lance.`{uri}` t USING late s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def main() -> None:
    """Report every comparison."""
    spark = quiet_session()
    for result in comparisons(spark):
        print_result(result)
    spark.stop()


def comparisons(spark: SparkSession) -> Iterator[Comparison]:
    """Yield MERGE beside each load."""
    _measured(spark, 0, 0)
    alone = _measured(spark, 0, 0)
    for appenders, rate in LOADS:
        beside = _measured(spark, appenders, rate)
        yield compared("Spark MERGE", appenders, rate, beside, alone, target=_TARGET)


def _measured(spark: SparkSession, appenders: int, rate: int) -> Landed:
    uri = fresh_table(_LIBRARY, enable_stable_row_ids=True)

    def merge(number: int) -> None:
        rows = [(key, number) for key in keys(number).to_pylist()]
        spark.createDataFrame(rows, "id long, v long").createOrReplaceTempView("late")
        spark.sql(_MERGE.format(uri=uri)).collect()

    with appending(_LIBRARY, uri, appenders, rate):
        return measured(merge, seconds=_SECONDS)


if __name__ == "__main__":
    main()
