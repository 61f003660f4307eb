"""Secrets in the settings of a session."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tests.spark.conftest import SECRET


def test_a_secret_is_set_but_is_not_on_the_command_line_of_java(spark: SparkSession) -> None:
    secret = spark.sparkContext.getConf().get(SECRET)
    assert secret
    gateway = SparkContext._gateway
    assert gateway is not None
    line = Path(f"/proc/{gateway.proc.pid}/cmdline")
    if not line.exists():
        pytest.skip("this system does not show command lines as files")
    shown = line.read_text()
    assert "java" in shown
    assert secret not in shown
