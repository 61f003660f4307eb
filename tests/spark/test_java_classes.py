"""The Java classes of this package on the Spark that runs the tests, whichever line it is."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import lancelake
from lancelake.spark.jvm import gateway as compiled
from lancelake.spark.jvm.gateway import KNOWN_VERSIONS, Gateway, open_gateway
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


@pytest.fixture
def refusing(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    """Return a session that refuses our jar."""

    def broken(*_: Any) -> Any:
        raise Py4JError("no jars here\nsecond line")

    before = compiled._LOADERS.pop(gateway.application, None)
    monkeypatch.setattr(compiled, "jar", broken)
    yield gateway
    compiled._LOADERS.pop(gateway.application, None)
    if before is not None:
        compiled._LOADERS[gateway.application] = before


def test_this_line_of_spark_is_known(spark: SparkSession) -> None:
    major, minor = spark.version.split(".")[:2]
    assert (int(major), int(minor)) in KNOWN_VERSIONS


def test_the_jar_is_what_the_sources_compile_to() -> None:
    command = [sys.executable, "scripts/jar.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_classes_fit(gateway: Gateway) -> None:
    assert compiled.are_compiled(gateway)


def test_rows_are_read_as_columns(spark: SparkSession, path: str) -> None:
    frame = spark.read.format("lance").load(path)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ColumnarToRow" in plan
    assert sorted(row.id for row in frame.collect()) == list(range(20))


def test_rows_are_written_by_the_class_for_batches(spark: SparkSession, path: str) -> None:
    spark.range(20, 25).write.format("lance").mode("append").save(path)
    assert lancelake.LanceDataset(path).count_rows() == 25


def test_row_commands_are_taken_from_the_planner(spark: SparkSession) -> None:
    strategies = spark._jsparkSession.experimental().extraStrategies()
    names = [strategies.apply(i).getClass().getName() for i in range(strategies.size())]
    assert names.count("lancelake.RowCommands") == 1


def runner_in(gateway: Gateway, evaluator: str) -> str:
    """Return the name of the class that talks to workers, as our class finds it."""
    for_name = gateway.member("java.lang.Class", "forName")
    ours = compiled._LOADERS[gateway.application].loadClass("lancelake.PythonWork")
    takes = gateway.array(gateway.cls("java.lang.Class"), [for_name("java.lang.Class")])
    find = ours.getDeclaredMethod("find", takes)
    find.setAccessible(True)
    given = gateway.array(gateway.cls("java.lang.Object"), [for_name(evaluator)])
    return str(find.invoke(None, given).getDeclaringClass().getName())


def test_the_runner_of_workers_is_found_by_what_it_is(gateway: Gateway) -> None:
    assert compiled.are_compiled(gateway)
    assert runner_in(gateway, EVALUATOR).startswith(f"{EVALUATOR}$$anon$")
    with pytest.raises(Py4JError) as caught:
        runner_in(gateway, "java.lang.String")
    reason = "java.lang.ClassNotFoundException: no runner of workers in java.lang.String"
    assert compiled._reason(caught.value) == reason


def test_a_fallback_warns_once_with_its_reason(
    refusing: Gateway, spark: SparkSession, path: str
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not compiled.are_compiled(refusing)
        assert not compiled.are_compiled(refusing)
        assert compiled.make(refusing, "RowWork") is None
    said = [str(w.message) for w in caught if "Java classes of lancelake" in str(w.message)]
    assert len(said) == 1
    assert said[0].endswith(": no jars here")
    assert spark.version in said[0]


def test_two_applications_of_a_jvm_have_the_classes_one_after_the_other(tmp_path: Path) -> None:
    command = [sys.executable, java_lifecycle.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == {"rows": [10, 10], "said": []}
