"""Programs started by spark-submit run with the configured master and executors."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.spark_faults.application import environment

MASTER, NAME = "local-cluster[1,1,1024]", "nightly"
PROGRAM = """
import json, sys
import pyarrow as pa
import lancelake
from lancelake.spark import session, write

place = sys.argv[1] + "/t.lance"
lancelake.write_dataset(pa.table({"id": [1, 2, 3]}), place)
spark = session(root=sys.argv[1])
context = spark.sparkContext
print(json.dumps(["master", context.master]), flush=True)
print(json.dumps(["name", context.appName]), flush=True)
print(json.dumps(["setting", spark.conf.get("spark.sql.shuffle.partitions")]), flush=True)
print(json.dumps(["sum", context.parallelize(range(10), 2).map(lambda n: n + 1).sum()]), flush=True)
works = {
    "read": lambda: spark.read.format("lance").load(place).where("id > 1").collect(),
    "write": lambda: write(spark.range(3), place, "append"),
    "delete": lambda: spark.sql(f"DELETE FROM lance.`{place}` WHERE id = 1"),
    "stream": lambda: spark.readStream.format("lance").load(place).writeStream.format("noop")
        .option("checkpointLocation", sys.argv[1] + "/cp").trigger(availableNow=True).start()
        .awaitTermination(),
}
for name, work in works.items():
    try:
        work()
        print(json.dumps([name, "done"]), flush=True)
    except Exception as error:
        print(json.dumps([name, str(error)]), flush=True)
"""


def submitted(folder: Path, python: str) -> dict[str, Any]:
    """Run the program with an interpreter for executors; return what it printed."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    settings = environment(folder)
    command = [str(Path(settings["SPARK_HOME"]) / "bin" / "spark-submit"), "--master", MASTER]
    command += ["--name", NAME, "--conf", "spark.sql.shuffle.partitions=3"]
    command += ["--conf", "spark.ui.enabled=false", str(program), str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**settings, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYSPARK_PYTHON": python},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines, done.stderr[-2000:]
    return dict(lines)


@pytest.fixture(scope="module")
def without_package(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the program prints when executors have Arrow, but not this package."""
    folder = tmp_path_factory.mktemp("submitted")
    python = folder / "python"
    libraries = sysconfig.get_path("purelib")
    # Without `site` no file of a development install is read.
    python.write_text(f'#!/bin/sh\nPYTHONPATH={libraries} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    return submitted(folder, str(python))


def test_settings_of_the_launcher_are_used(without_package: dict[str, Any]) -> None:
    found = {key: without_package[key] for key in ("master", "name", "setting")}
    assert found == {"master": MASTER, "name": NAME, "setting": "3"}


def test_executors_without_the_package_run_other_code(without_package: dict[str, Any]) -> None:
    assert without_package["sum"] == 55


@pytest.mark.parametrize("work", ["read", "write", "delete", "stream"])
def test_executors_without_the_package_say_so(without_package: dict[str, Any], work: str) -> None:
    assert "does not have lancelake" in without_package[work]


def test_executors_with_the_package_work(tmp_path: Path) -> None:
    found = submitted(tmp_path, sys.executable)
    works = ("read", "write", "delete", "stream")
    assert {name: found[name] for name in works} == dict.fromkeys(works, "done")
