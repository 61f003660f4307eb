"""`lancelake spark-conf` prints settings that Spark reads."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lancelake.spark import jar


def test_the_lines_are_those_of_a_file_of_defaults(output: Callable[..., str]) -> None:
    lines = output("spark-conf", "--root", "/data/my tables", "--catalog", "lake").splitlines()
    assert dict(line.split(None, 1) for line in lines) == {
        "spark.jars": str(jar()),
        "spark.driver.extraClassPath": str(jar()),
        "spark.sql.extensions": "lancelake.LanceExtensions",
        "spark.sql.catalog.lake": "lancelake.LanceCatalog",
        "spark.sql.catalog.spark_catalog": "lancelake.LanceSessionCatalog",
        "spark.lancelake.python": sys.executable,
        "spark.sql.catalog.lake.root": "/data/my tables",
    }


def test_options_are_quoted_for_the_shell(output: Callable[..., str]) -> None:
    words = shlex.split(output("spark-conf", "--as", "submit", "--root", "/data/my tables"))
    assert words[::2] == ["--conf"] * 7
    assert "spark.sql.catalog.lance.root=/data/my tables" in words


def test_the_configuration_of_emr_is_a_json_document(output: Callable[..., str]) -> None:
    (entry,) = json.loads(output("spark-conf", "--as", "emr"))
    assert entry["Classification"] == "spark-defaults"
    assert entry["Properties"]["spark.sql.catalog.lance"] == "lancelake.LanceCatalog"


def test_a_cluster_of_databricks_gets_a_script_and_settings(output: Callable[..., str]) -> None:
    script, settings = output("spark-conf", "--as", "databricks").split("# Spark config")
    assert "/databricks/jars" in script
    assert "spark.sql.extensions lancelake.LanceExtensions" in settings
    assert "spark.lancelake.python /databricks/python/bin/python" in settings
    assert sys.executable not in settings


def test_the_jar_is_installed(
    output: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    text = output("spark-conf", "--install")
    assert (tmp_path / "jars" / jar().name).read_bytes() == jar().read_bytes()
    assert "spark.jars" not in text


@pytest.mark.parametrize(
    ("home", "said"), [("", "SPARK_HOME is not set"), ("/nowhere", "has no folder jars")]
)
def test_there_is_nowhere_to_install_to(
    run: Callable[..., object], monkeypatch: pytest.MonkeyPatch, home: str, said: str
) -> None:
    monkeypatch.setenv("SPARK_HOME", home)
    result = run("spark-conf", "--install")
    assert (result.exit_code, said in result.stderr) == (2, True)
