"""Modules that an import of the package must not load."""

from __future__ import annotations

import subprocess
import sys


def loaded(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*sorted(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_command_line_does_not_load_spark() -> None:
    assert "pyspark" not in loaded("import lancelake, lancelake.cli.group")


def test_naming_the_package_does_not_load_spark() -> None:
    assert "pyspark" not in loaded("import lancelake.spark")


def test_no_module_hides_a_public_name() -> None:
    """`from lancelake.spark import session` gives the function, whatever was imported before."""
    statement = (
        "import importlib, inspect, pkgutil, lancelake.spark as spark\n"
        "packages = [m.name for m in pkgutil.walk_packages(spark.__path__, 'lancelake.spark.')]\n"
        "skipped = ('daemon', 'limited_source')\n"
        "for name in packages:\n"
        "    if not name.endswith(skipped): importlib.import_module(name)\n"
        "hidden = [n for n in spark.__all__ if inspect.ismodule(getattr(spark, n))]\n"
        "assert not hidden, hidden"
    )
    assert "pyspark" in loaded(statement)


def test_the_planner_of_a_server_does_not_load_pandas() -> None:
    """It is as much to load as all the rest, and the first query waits for it."""
    assert "pandas" not in loaded("import lancelake.spark.planner.process")
