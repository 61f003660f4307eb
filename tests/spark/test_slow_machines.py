"""Sessions of the tests and of the demo wait for workers that a busy machine starts slowly."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENT = {"spark.network.timeout": "600s", "spark.python.authenticate.socketTimeout": "600s"}


def test_sessions_of_the_tests_are_patient(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert {key: conf.get(key) for key in PATIENT} == PATIENT


def test_sessions_of_the_demo_are_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    demo = importlib.import_module("demo_spark")
    given: dict[str, str] = {}
    monkeypatch.setattr(demo, "session", lambda *_, **settings: given.update(settings))
    demo.started("local", EXAMPLES)
    assert PATIENT.items() <= given.items()
