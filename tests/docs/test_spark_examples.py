"""The examples in the docstrings of the Spark API run, and every public method has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lancelake.spark
from lancelake.spark import LanceTable
from lancelake.spark.api.merge_builder import LanceMergeBuilder
from lancelake.spark.sql.maintenance_methods import LanceOptimizeBuilder
from tests.docs.examples import (
    arguments_of,
    embedded_names,
    public_members,
    run_examples,
    text_of,
)

CLASSES = (LanceTable, LanceMergeBuilder, LanceOptimizeBuilder)
CALLS = {name: getattr(lancelake.spark, name) for name in lancelake.spark.__all__}
EVERY: dict[str, Any] = {**CALLS, **dict(public_members(CLASSES))}
WITH_EXAMPLE = {name: value for name, value in EVERY.items() if ">>>" in text_of(value)}
# Each example takes a second or more: functions and classes, and every fifth method, by default.
METHODS = sorted(name for name in WITH_EXAMPLE if "." in name)
SELECTED = (
    list(WITH_EXAMPLE)
    if os.environ.get("LANCELAKE_EXAMPLES") == "all"
    else sorted([*WITH_EXAMPLE.keys() - set(METHODS), *METHODS[::5]])
)
# `optimize` builds its argument.
INTERNAL = {"LanceOptimizeBuilder", "LanceTable.compacted"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    conf = {
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    root = str(tmp_path_factory.mktemp("warehouse"))
    found = lancelake.spark.session("local[2]", root=root, **conf)
    yield found
    found.stop()


@pytest.mark.parametrize("name", SELECTED)
def test_example_runs(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    embedded_names()
    path = str(tmp_path / "people.lance")
    names = {
        "LanceTable": LanceTable,
        "documents": LanceTable.forPath(spark, str(tmp_path / "docs.lance")),
        "folder": str(tmp_path),
        "path": path,
        "spark": spark,
        "table": LanceTable.forPath(spark, path),
    }
    run_examples(name, WITH_EXAMPLE[name], names)


def test_every_public_name_has_an_example() -> None:
    assert EVERY.keys() - WITH_EXAMPLE.keys() == INTERNAL


def test_every_argument_is_described() -> None:
    missing = {
        (name, argument)
        for name, value in EVERY.items()
        for argument in arguments_of(value)
        if f"{argument}: " not in text_of(value)
    }
    assert missing == set()
