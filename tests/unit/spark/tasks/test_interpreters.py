"""Which packages Python workers have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from lancelake.errors import UnsupportedError
from lancelake.spark.tasks import on_executors
from lancelake.spark.tasks.on_executors import ensure_workers


@dataclass
class Cluster:
    """A Spark context whose workers lack packages."""

    missing: list[str]
    master: str = "spark://host:7077"
    pythonExec: str = "python3"  # noqa: N815  # PySpark's name
    applicationId: str = field(default_factory=lambda: str(uuid4()))  # noqa: N815
    jobs: int = 0

    def parallelize(self, _items: list[int], _parts: int) -> Cluster:
        """Start a job."""
        self.jobs += 1
        return self

    def map(self, _work: Callable[[int], Any]) -> Cluster:
        """Run the job."""
        return self

    def first(self) -> tuple[str, str, list[str]]:
        """Return what a worker would answer."""
        return "/usr/bin/python3", "node7", self.missing


def test_packages_that_workers_lack_are_named_with_the_interpreter() -> None:
    expected = "run /usr/bin/python3 on node7, which does not have pyarrow, pylance"
    with pytest.raises(UnsupportedError, match=expected) as caught:
        ensure_workers(Cluster(missing=["pyarrow", "lance"]))  # type: ignore[arg-type]
    assert sys.executable in str(caught.value)


def test_workers_are_asked_once() -> None:
    cluster = Cluster(missing=[])
    ensure_workers(cluster)  # type: ignore[arg-type]
    ensure_workers(cluster)  # type: ignore[arg-type]
    assert cluster.jobs == 1


def test_workers_in_this_interpreter_are_not_asked() -> None:
    cluster = Cluster(missing=["pyarrow"], master="local[2]", pythonExec=sys.executable)
    ensure_workers(cluster)  # type: ignore[arg-type]
    assert cluster.jobs == 0


def test_a_worker_finds_what_it_lacks() -> None:
    find = on_executors._finder(["pyarrow", "no_such_package", "no_such.package"])
    assert find(0)[2] == ["no_such_package", "no_such.package"]
