"""The same rows in Parquet and in Lance tables that were written, changed and widened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

import lancelake
from lancelake.spark.values.spark_types import spark_field
from tests.spark.corpus.data import other_rows, rows
from tests.support.official import Official

COUNT = 300
_FIRST = 160
_EXTRA = 40
_LATE = pa.field("late", pa.int64())
SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    # Parquet drops rows by statistics that know nothing of numbers that are not numbers.
    "spark.sql.parquet.filterPushdown": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a query calls its tables."""

    t: str
    u: str
    old: str

    def fill(self, sql: str) -> str:
        """Return a query about these tables."""
        return sql.replace("{t}", self.t).replace("{u}", self.u).replace("{old}", self.old)


def in_parquet(spark: SparkSession, folder: Path) -> Names:
    """Write Parquet files, make views of them, and return the views."""
    every = rows(COUNT)
    late = [None if i < _FIRST else i * 10 for i in range(COUNT)]
    whole = every.append_column(_LATE, pa.array(late, pa.int64()))
    tables = {"t": whole, "u": other_rows(40), "old": every.slice(0, _FIRST)}
    for name, table in tables.items():
        path = str(folder / f"{name}.parquet")
        frame(spark, table).write.mode("overwrite").parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(f"parquet_{name}")
    return Names(t="parquet_t", u="parquet_u", old="parquet_old")


def written_by_spark(spark: SparkSession, folder: Path) -> Names:
    """Write the tables with Spark; return views of them."""
    path = folder / "spark.lance"
    every = rows(COUNT + _EXTRA)
    first = frame(spark, every.slice(0, _FIRST)).repartitionByRange(3, "id")
    first.write.format("lance").mode("append").save(str(path))
    lancelake.LanceDataset(path).add_columns(_LATE)
    append = frame(spark, _widened(every)).write.format("lance").mode("append")
    append.option("maxRowsPerFile", 60).save(str(path))
    lancelake.LanceDataset(path).delete(f"id >= {COUNT}")
    small = folder / "small.lance"
    frame(spark, other_rows(40)).write.format("lance").mode("append").save(str(small))
    return _views(spark, "spark", path, small)


def written_officially(spark: SparkSession, folder: Path, official: Official) -> Names:
    """Write the tables with a release of official Lance; return views of them."""
    path, small = folder / "official.lance", folder / "official_small.lance"
    every = rows(COUNT + _EXTRA)
    begin = every.slice(0, _FIRST)
    official.write(path, begin, data_storage_version="2.2", max_rows_per_file=50)
    official.add_null_column(path, _LATE)
    official.append(path, _widened(every), max_rows_per_file=70)
    official.delete(path, f"id >= {COUNT}")
    official.write(small, other_rows(40))
    return _views(spark, "official", path, small)


def frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return rows as a DataFrame with the types that a table shows."""
    schema = t.StructType([spark_field(field) for field in table.schema])
    # Of arrays that begin in the middle of others, PySpark makes errors.
    table = table.take(list(range(table.num_rows))).combine_chunks()
    return spark.createDataFrame(table, schema)


def _widened(every: pa.Table) -> pa.Table:
    rest = every.slice(_FIRST)
    late = [i * 10 for i in range(_FIRST, _FIRST + rest.num_rows)]
    return rest.append_column(_LATE, pa.array(late, pa.int64()))


def _views(spark: SparkSession, prefix: str, path: Path, small: Path) -> Names:
    read = spark.read.format("lance")
    read.load(str(path)).createOrReplaceTempView(f"{prefix}_t")
    read.load(str(small)).createOrReplaceTempView(f"{prefix}_u")
    old = spark.read.format("lance").option("version", 1).load(str(path))
    old.createOrReplaceTempView(f"{prefix}_old")
    return Names(t=f"{prefix}_t", u=f"{prefix}_u", old=f"{prefix}_old")


def by_path(folder: Path) -> Names:
    """Return the tables that Spark wrote, by path in the catalog."""
    path, small = (f"lance.`{folder / name}`" for name in ("spark.lance", "small.lance"))
    return Names(t=path, u=small, old=f"{path} VERSION AS OF 1")
