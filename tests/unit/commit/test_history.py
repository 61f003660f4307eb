"""Committed transactions are read in order, once, and in batches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from lancelake.commit.candidate import commits_after
from lancelake.commit.handler import taken_apart
from lancelake.commit.loop import commit
from lancelake.errors import VersionNotFoundError
from lancelake.format import layout
from lancelake.format.layout import ManifestName, ManifestNaming, manifest_name
from lancelake.storage.store import ObjectStore
from tests.support.counting_store import CountingStore
from tests.support.failing_store import InterceptedStore
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import line_on, means, request, seed, set_config

WAIT_S = 30


def name(version: int) -> ManifestName:
    return taken_apart(manifest_name(version, ManifestNaming.V2))


@pytest.fixture(scope="module")
def store() -> DictStore:
    """Return a table with forty versions."""
    made = DictStore()
    seed(made)
    for number in range(2, 41):
        asked = request(set_config(f"k{number}", "v"), unique=number)
        commit(line_on(made), asked, means(made))
    return made


def versions(store: ObjectStore, seen: int, newest: int) -> list[int]:
    commits = commits_after(line_on(store), name(seen), name(newest))
    return [landed.snapshot.version for landed in commits]


@pytest.mark.parametrize("seen", [1, 20, 31, 32, 39, 40])
def test_commits_come_in_order(store: DictStore, seen: int) -> None:
    assert versions(store, seen, 40) == list(range(seen + 1, 41))


@pytest.mark.parametrize("seen", [1, 35])
def test_every_version_is_read_once(store: DictStore, seen: int) -> None:
    counting = CountingStore(store)
    versions(counting, seen, 40)
    paths = sorted(path for _, path in counting.paths)
    assert paths == sorted(layout.manifest(name(v).name) for v in range(seen + 1, 41))


def test_many_versions_are_read_at_once(store: DictStore) -> None:
    running: list[str] = []
    both = threading.Event()

    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        running.append(path)
        if len(running) > 1:
            both.set()
        assert both.wait(WAIT_S), "no second read began while the first one ran"
        return carry_out()

    assert versions(InterceptedStore(store, around), 1, 40) == list(range(2, 41))


def test_no_more_is_read_than_a_few_versions_ahead(store: DictStore) -> None:
    counting = CountingStore(store)
    commits = commits_after(line_on(counting), name(1), name(40))
    assert next(commits).snapshot.version == 2
    commits.close()  # type: ignore[attr-defined]  # it is a generator
    assert counting.total <= 9


def test_the_error_of_a_removed_version_comes_in_its_turn(store: DictStore) -> None:
    holed = DictStore(store.objects)
    holed.delete(layout.manifest(name(15).name))
    commits = commits_after(line_on(holed), name(1), name(40))
    assert [next(commits).snapshot.version for _ in range(13)] == list(range(2, 15))
    with pytest.raises(VersionNotFoundError, match="15"):
        next(commits)
