"""Sessions with Lance tables leave PySpark's own classes and functions as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import inspect, pkgutil, sys
import pyspark.sql, pyspark.sql.connect, pyspark.sql.streaming, pyspark.errors.exceptions.captured
import pyspark.java_gateway, pyspark.sql.datasource

KINDS = (classmethod, staticmethod, property)


def members():
    for name, module in list(sys.modules.items()):
        if not name.startswith("pyspark"):
            continue
        for key, value in list(vars(module).items()):
            if inspect.isroutine(value):
                yield f"{name}.{key}", value
            if inspect.isclass(value) and value.__module__ == name:
                for own, member in list(vars(value).items()):
                    if inspect.isroutine(member) or isinstance(member, KINDS):
                        yield f"{name}.{key}.{own}", member


before = dict(members())
from lancelake.spark import LanceTable, register, session

root = sys.argv[1]
spark = session("local[1]", root=root, **{"spark.ui.enabled": False})
register(spark, "other", root=root)
spark.range(3).write.format("lance").save(f"{root}/t.lance")
spark.newSession().table("lance.t").count()
stream = spark.readStream.table("lance.t").writeStream.option("checkpointLocation", f"{root}/c")
stream.trigger(availableNow=True).toTable("lance.copy").awaitTermination()
LanceTable.forName(spark, "other.copy").delete("id = 1")
print("compared", len(before) > 1000)
for name, member in members():
    # Every session of PySpark sets this one itself.
    if name in before and before[name] is not member and name != "pyspark.core.rdd.RDD.toDF":
        print("replaced", name)
print("rows", spark.table("lance.copy").count())
"""


def test_no_method_is_replaced(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    said = [line for line in done.stdout.splitlines() if " " in line and "Stage" not in line]
    assert said == ["compared True", "rows 2"], done.stderr
