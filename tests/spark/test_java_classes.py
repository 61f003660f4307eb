"""The Java classes of this package on the Spark that runs the tests, whichever line it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import lancelake
from lancelake.errors import UnsupportedError
from lancelake.spark.jvm.gateway import KNOWN_VERSIONS, Gateway, open_gateway, put_on_driver
from tests.support import java_lifecycle

ROOT = Path(__file__).parents[2]
EVALUATOR = "org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory$MapInBatchEvaluator"


@pytest.fixture
def gateway(spark: SparkSession) -> Gateway:
    """Return the Java side of the session."""
    return open_gateway(spark)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a table of a few rows."""
    lancelake.write_dataset(pa.table({"id": range(20)}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def test_this_line_of_spark_is_known(spark: SparkSession) -> None:
    major, minor = spark.version.split(".")[:2]
    assert (int(major), int(minor)) in KNOWN_VERSIONS


def test_the_jar_is_what_the_sources_compile_to() -> None:
    command = [sys.executable, "scripts/jar.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_rows_are_read_as_columns(spark: SparkSession, path: str) -> None:
    frame = spark.read.format("lance").load(path)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ColumnarToRow" in plan
    assert sorted(row.id for row in frame.collect()) == list(range(20))


def test_rows_are_written_by_the_class_for_batches(spark: SparkSession, path: str) -> None:
    spark.range(20, 25).write.format("lance").mode("append").save(path)
    assert lancelake.LanceDataset(path).count_rows() == 25


def test_row_commands_are_taken_from_the_planner(spark: SparkSession) -> None:
    strategies = spark._jsparkSession.sessionState().planner().strategies()
    names = [strategies.apply(i).getClass().getName() for i in range(strategies.size())]
    assert names.count("lancelake.RowCommands") == 1


def runner_in(gateway: Gateway, evaluator: str) -> str:
    """Return the name of the class that talks to workers, as our class finds it."""
    for_name = gateway.member("java.lang.Class", "forName")
    loader = gateway.member("java.lang.Thread", "currentThread")().getContextClassLoader()
    ours = loader.loadClass("lancelake.PythonWork")
    takes = gateway.array(gateway.cls("java.lang.Class"), [for_name("java.lang.Class")])
    find = ours.getDeclaredMethod("find", takes)
    find.setAccessible(True)
    given = gateway.array(gateway.cls("java.lang.Object"), [for_name(evaluator)])
    return str(find.invoke(None, given).getDeclaringClass().getName())


def test_the_runner_of_workers_is_found_by_what_it_is(gateway: Gateway) -> None:
    assert runner_in(gateway, EVALUATOR).startswith(f"{EVALUATOR}$$anon$")
    with pytest.raises(Py4JError, match=r"no runner of workers in java.lang.String"):
        runner_in(gateway, "java.lang.String")


class FullLoader:
    """A class loader that takes no jar."""

    def getResource(self, _: str) -> None:  # noqa: N802  # names of Java
        return None

    def addURL(self, _: Any) -> None:  # noqa: N802
        raise Py4JError("Method addURL does not exist")


def test_a_driver_that_takes_no_jar_is_told_how_to_start() -> None:
    jvm = MagicMock()
    jvm.java.lang.Thread.currentThread.return_value.getContextClassLoader.return_value = (
        FullLoader()
    )
    with pytest.raises(UnsupportedError, match=r"Start it with spark\.jars=.*lancelake-spark\.jar"):
        put_on_driver(jvm)


def test_two_applications_of_a_jvm_have_the_classes_one_after_the_other(tmp_path: Path) -> None:
    command = [sys.executable, java_lifecycle.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {"rows": [10, 10], "said": []}
