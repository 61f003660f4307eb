"""Files are removed in batches, within the rate limit."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lancelake.engine.port import LocalEngine
from lancelake.maintenance.cleanup.run import RemoveFiles, from_bytes, removal
from lancelake.storage.location import Location, Session
from tests.support.set_clock import ManualClock


@pytest.fixture
def names(tmp_path: Path) -> tuple[str, ...]:
    """Return the names of ten files."""
    found = tuple(f"f{number}" for number in range(10))
    for name in found:
        (tmp_path / name).touch()
    return found


def test_files_are_removed(tmp_path: Path, names: tuple[str, ...]) -> None:
    task = RemoveFiles(location=Location.parse(tmp_path), paths=names)
    assert from_bytes([pickle.loads(pickle.dumps(task)).run()]) == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_gone_are_no_failure(tmp_path: Path) -> None:
    task = RemoveFiles(location=Location.parse(tmp_path), paths=("a", "b"))
    assert task.remove() == []


def test_a_file_that_cannot_be_removed_does_not_keep_the_others(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    (tmp_path / "folder").mkdir()
    task = RemoveFiles(location=Location.parse(tmp_path), paths=("folder", *names))
    assert task.remove() == ["folder"]
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_no_more_files_go_per_second_than_allowed(tmp_path: Path, names: tuple[str, ...]) -> None:
    clock = ManualClock()
    task = RemoveFiles(
        location=Location.parse(tmp_path, session=Session(clock=clock)), paths=names, per_second=4
    )
    task.remove()
    assert clock.slept == [1.0, 1.0]


def test_tasks_that_run_at_once_share_what_is_allowed(tmp_path: Path) -> None:
    paths = [f"f{number}" for number in range(100)]
    place, engine = Location.parse(tmp_path), LocalEngine(parallelism=4)
    job = removal(place, paths, engine, per_second=20, progress=None)
    allowed = [task.per_second for task in job.tasks if isinstance(task, RemoveFiles)]
    assert allowed == [5.0] * 4


def test_a_limit_below_the_number_of_workers_holds(tmp_path: Path) -> None:
    paths = [f"f{number}" for number in range(10)]
    place, engine = Location.parse(tmp_path), LocalEngine(parallelism=8)
    job = removal(place, paths, engine, per_second=2, progress=None)
    allowed = [task.per_second for task in job.tasks if isinstance(task, RemoveFiles)]
    assert sum(rate or 0 for rate in allowed) == 2
