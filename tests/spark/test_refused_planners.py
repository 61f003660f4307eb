"""Planners that do not start: the first line of the error says what is wrong and what to do."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from lancelake.spark import jar
from lancelake.spark.jars import DRIVER_CLASS_PATH, JARS
from lancelake.version import __version__
from tests.support.front_doors import connect_server, run_module

CLIENT = "tests.support.refusing_python"
SET_PYTHON = (
    "Set spark.lancelake.python to a Python interpreter with the packages lancelake and pyspark."
)
PLANNED = "Lance tables are planned in Python, "
PROCESS = "The Python process that plans Lance tables "
AGAIN = "Correct the cause and run the query again."


def jar_of_another_release(folder: Path) -> Path:
    """Return a copy of the jar whose manifest names another release."""
    other = folder / "lancelake-other.jar"
    with zipfile.ZipFile(jar()) as ours, zipfile.ZipFile(other, "w") as copy:
        for entry in ours.infolist():
            data = ours.read(entry)
            if entry.filename == "META-INF/MANIFEST.MF":
                data = data.replace(__version__.encode(), b"0.0.1")
            copy.writestr(entry, data)
    return other


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the lines of each error."""
    root = tmp_path_factory.mktemp("refused")
    python = root / "python"
    other = jar_of_another_release(root)
    conf = {JARS: other, DRIVER_CLASS_PATH: other, "spark.lancelake.python": python}
    with connect_server(root, **{name: str(value) for name, value in conf.items()}) as server:
        done = run_module(root, CLIENT, str(server.port), str(python))
    assert done.returncode == 0, done.stderr
    errors: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    prefix = "(java.lang.IllegalStateException) "
    return {
        name: text.removeprefix(prefix).replace(str(python), "PYTHON").splitlines()
        for name, text in errors.items()
    }


@pytest.mark.parametrize(
    ("case", "first"),
    [
        (
            "no Python",
            f"{PLANNED}which cannot be started: .*No such file or directory. {SET_PYTHON}",
        ),
        ("silent", f"{PLANNED}but PYTHON ended with exit code 3 and wrote nothing. {SET_PYTHON}"),
        ("killed", f"{PROCESS}was killed by signal 9 when it was started. {AGAIN}"),
        (
            "no package",
            f"{PLANNED}but PYTHON lacks a package: .*No module named '?lancelake.*. {SET_PYTHON}",
        ),
        ("own error", f"{PROCESS}ended with exit code 1 when it was started: .*Error.* {AGAIN}"),
        (
            "other release",
            f"the jar is of lancelake 0.0.1, but the Python package is {re.escape(__version__)}. "
            "Use the jar of the package: `lancelake spark-conf` names it.",
        ),
    ],
)
def test_the_first_line_of_the_error(said: dict[str, list[str]], case: str, first: str) -> None:
    assert re.fullmatch(first, said[case][0])


def test_the_lines_of_the_planner_follow(said: dict[str, list[str]]) -> None:
    assert said["own error"][1] == "The last lines of the process:"
    assert any(line.strip().startswith("File ") for line in said["own error"])
