"""Benchmark of MERGE on Lance tables, compared with Delta Lake and with rewriting Parquet.

Delta Lake's jars come through Maven, and fit an older Spark than the newest:
.interop/spark-4.2/bin/python -m benchmarks.spark_merging
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.spark_runs import quiet_session, report

_DELTA = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
_ROWS = 10_000_000
_CHANGED = 90_000
_NEW = 10_000
_ROUNDS = 3
_COLUMNS = (
    "id",
    "rand(1) AS a",
    "concat('name-', id % 1000) AS b",
    "pmod(id * 2654435761, 1099511627776) AS c",
    "sha2(CAST(id AS STRING), 256) AS d",
)
_STEP = _ROWS // _CHANGED
_MERGE = """MERGE INTO {target} AS t USING late AS s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""


def main() -> None:
    """Report every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    folder = tables.ROOT / "spark-merging"
    folder.mkdir(parents=True, exist_ok=True)
    report(cases(folder), parser.parse_args().only)


def cases(folder: Path) -> Iterator[Case]:
    """Yield the merge beside each peer; tables are put back after every merge."""
    spark = quiet_session(
        **{
            "spark.jars": ",".join(str(jar) for jar in _jars(folder / "jars")),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    )
    _prepare(spark, folder)
    late = spark.read.parquet(str(folder / "late.parquet"))
    late.createOrReplaceTempView("late")
    ours = folder / "now.lance"
    peers: tuple[tuple[str, float, Path, Callable[[Path], object]], ...] = (
        ("Delta Lake", 0.5, folder / "now.delta", lambda p: _merged(spark, f"delta.`{p}`")),
        ("a rewrite of Parquet", 1.0, folder / "now.parquet", lambda p: _rewritten(spark, p)),
    )
    for name, target, theirs, merge in peers:
        yield Case(
            name=f"MERGE of 1 % into 10 M rows, and {name}",
            target=target,
            before=partial(_put_back, ours, theirs),
            ours=lambda: _merged(spark, f"lance.`{ours}`"),
            official=partial(merge, theirs),
            rounds=_ROUNDS,
        )
    spark.stop()


def _merged(spark: SparkSession, target: str) -> None:
    spark.sql(_MERGE.format(target=target)).collect()


def _rewritten(spark: SparkSession, table: Path) -> None:
    """Do without row-level changes: write what the table is after the merge."""
    late = spark.table("late")
    before = spark.read.parquet(str(table))
    after = before.join(late, "id", "left_anti").unionByName(late)
    after.write.mode("overwrite").parquet(str(table.with_stem("after")))


def _prepare(spark: SparkSession, folder: Path) -> None:
    rows = spark.range(0, _ROWS, 1, 8).selectExpr(*_COLUMNS)
    for form in ("lance", "delta", "parquet"):
        _written(rows, form, folder / f"first.{form}")
    changed = spark.range(0, _CHANGED * _STEP, _STEP, 1)
    new = spark.range(_ROWS, _ROWS + _NEW, 1, 1)
    _written(changed.union(new).selectExpr(*_COLUMNS), "parquet", folder / "late.parquet")


def _written(rows: DataFrame, form: str, path: Path) -> None:
    if not path.exists():
        options = {"delta.enableDeletionVectors": "true"} if form == "delta" else {}
        mode = "append" if form == "lance" else "error"
        rows.write.format(form).options(**options).mode(mode).save(str(path))


def _put_back(*tables_now: Path) -> None:
    """Make tables what they were at first. Files are never changed, so links to them will do."""
    for now in tables_now:
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(now.with_stem("first"), now, copy_function=os.link)


def _jars(folder: Path) -> list[Path]:
    """Fetch the jars of Delta Lake, once."""
    for artifact in _DELTA:
        _, name, version = artifact.split(":")
        if not (folder / f"{name}-{version}.jar").exists():
            for goal in (
                f"get -Dartifact={artifact} -Dtransitive=false",
                f"copy -Dartifact={artifact}",
            ):
                command = f"mvn -q dependency:{goal} -DoutputDirectory={folder}"
                subprocess.run(command.split(), check=True)
    return sorted(folder.glob("*.jar"))


if __name__ == "__main__":
    main()
