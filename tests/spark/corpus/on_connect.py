"""Asks queries through Spark Connect, in a process of its own: `on_connect folder first last`.

Prints a line of JSON for each query whose answers differ, and how many were asked at the end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lancelake.spark import register
from tests.spark.corpus.answers import difference
from tests.spark.corpus.queries import query
from tests.spark.corpus.tables import SETTINGS, in_parquet, written_by_spark, written_officially
from tests.support.official import Official
from tests.support.spark_connect import connect_session

RELEASE = "14.0.2"


def main(folder: Path, first: int, last: int) -> None:
    """Ask the queries that the seeds from `first` to `last` make, of two sets of tables in turn."""
    spark = connect_session({**SETTINGS, "spark.sql.shuffle.partitions": "2"})
    register(spark)
    expected = in_parquet(spark, folder)
    official = Official(RELEASE)
    tables = [written_by_spark(spark, folder), written_officially(spark, folder, official)]
    official.close()
    for seed in range(first, last):
        asked = query(seed)
        result = difference(spark, asked, expected, tables[seed % len(tables)])
        if result is not None:
            print(json.dumps({"seed": seed, "sql": asked.sql, "difference": result}), flush=True)
    print(json.dumps({"asked": last - first}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
