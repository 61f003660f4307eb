"""What works through Spark Connect; in a process of its own, since a process has one kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
from pyspark.sql import SparkSession
from lancelake.spark import error_of, read, register

spark = SparkSession.builder.remote("local[2]").getOrCreate()
register(spark)
path = sys.argv[1]
frame = spark.createDataFrame([(i, f"s{i}") for i in range(10)], "id long, s string")
for _ in range(2):
    frame.write.format("lance").mode("append").save(path)
print("rows", read(spark, path).where("id > 5").count(), read(spark, path, version=1).count())
print("sum", spark.read.format("lance").load(path).selectExpr("sum(id)").first()[0])
feed = spark.read.format("lance").option("readChangeFeed", True).option("startingVersion", 2)
print("changes", feed.load(path).where("_change_type = 'insert'").count())
for options in ({"vresion": 1}, {"version": 9}):
    try:
        read(spark, path, **options).count()
    except Exception as failure:
        print("error", error_of(failure))
spark.stop()
"""


def test_the_plain_source_reads_and_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "t.lance")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    kinds = ("rows", "sum", "changes", "error")
    said = [line for line in done.stdout.splitlines() if line.startswith(kinds)]
    assert said[:3] == ["rows 8 10", "sum 90", "changes 10"], done.stderr[-2000:]
    assert "Did you mean version?" in said[3]
    assert "version 9 was not found" in said[4]
