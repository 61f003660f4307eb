"""One small Spark session per test process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lancelake.spark import session

SECRET = "spark.hadoop.tests.secret"


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the catalog's tables."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[SparkSession]:
    """Return a session that knows Lance tables."""
    conf = {
        SECRET: "not-to-be-shown",
        "spark.driver.memory": "1g",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": 2,
        # Parquet drops rows by statistics that know nothing of numbers that are not numbers.
        "spark.sql.parquet.filterPushdown": False,
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
    }
    result = session("local[2]", root=str(warehouse), **conf)
    yield result
    result.stop()
