"""Fixtures for Spark applications, and the checks of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark_faults.application import CLUSTER, Application


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """Return an application with two executors."""
    application = Application(tmp_path_factory.mktemp("cluster"), CLUSTER)
    try:
        with application:
            yield application
    finally:
        application.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the folder of one work."""
    return tmp_path / "place"
