"""Automatic cleanup after commits, by the table's config."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.maintenance.cleanup.run import clean_up_if_due, policy_of
from lancelake.storage import disk_sync, location
from lancelake.storage.local import LocalStore
from lancelake.table.publish import (
    INTERVAL,
    OLDER_THAN,
    RATE_LIMIT,
    REFERENCED_BRANCHES,
    RETAIN_VERSIONS,
)
from tests.support.counting_store import CountingStore


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Nothing crashes here."""
    with disk_sync.waiting(waits=False):
        yield


def asking(root: Path, config: dict[str, str]) -> list[list[int]]:
    """Make a table that asks for cleanups, and return the versions left after each overwrite."""
    lance.write_dataset(pa.table({"a": [0]}), root).update_config(dict(config))
    left = []
    for number in range(1, 7):
        dataset = lance.write_dataset(pa.table({"a": [number]}), root, mode="overwrite")
        left.append([version["version"] for version in dataset.versions()])
    return left


def test_cleanups_come_every_so_many_versions(tmp_path: Path) -> None:
    left = asking(tmp_path / "t.lance", {INTERVAL: "3", OLDER_THAN: "0s"})
    assert left == [[2, 3], [2, 3, 4], [2, 3, 4, 5], [5, 6], [5, 6, 7], [5, 6, 7, 8]]


def test_as_many_stay_as_are_to_be_retained(tmp_path: Path) -> None:
    left = asking(tmp_path / "t.lance", {INTERVAL: "1", RETAIN_VERSIONS: "4"})
    assert left[-1] == [5, 6, 7, 8]


def test_young_versions_stay(tmp_path: Path) -> None:
    left = asking(tmp_path / "t.lance", {INTERVAL: "0", OLDER_THAN: "2weeks 1day"})
    assert left[-1] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_tag_does_not_stop_them(tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": [0]}), root).tags.create("t", 1)
    lance.dataset(root).update_config({INTERVAL: "1", OLDER_THAN: "0s"})
    for _ in range(3):
        dataset = lance.write_dataset(pa.table({"a": [1]}), root, mode="overwrite")
    assert [version["version"] for version in dataset.versions()] == [1, 4, 5]


def test_a_config_that_makes_no_sense_is_a_warning(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [0]}), tmp_path / "t.lance")
    with pytest.warns(
        RuntimeWarning, match="version 2 .* was committed, but .*interval is 'often'"
    ):
        dataset.update_config({INTERVAL: "often"})
    assert lance.dataset(tmp_path / "t.lance").version == 2


def test_every_key_is_understood() -> None:
    policy = policy_of(
        {
            OLDER_THAN: "1day 12h",
            RETAIN_VERSIONS: "7",
            RATE_LIMIT: "100",
            REFERENCED_BRANCHES: "true",
        }
    )
    assert policy.older_than == timedelta(days=1, hours=12)
    assert (policy.retain_versions, policy.delete_rate_limit) == (7, 100)
    assert policy.clean_referenced_branches


@pytest.mark.parametrize(
    "config",
    [
        {OLDER_THAN: "soon"},
        {OLDER_THAN: "3 moons"},
        {RETAIN_VERSIONS: "0"},
        {RATE_LIMIT: "-1"},
        {REFERENCED_BRANCHES: "maybe"},
    ],
    ids=str,
)
def test_values_that_make_no_sense_are_refused(config: dict[str, str]) -> None:
    (key,) = config
    with pytest.raises(InvalidRequestError, match=key):
        policy_of(config)


def test_a_table_that_asks_for_nothing_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = lance.write_dataset(pa.table({"a": [0]}), tmp_path / "t.lance")._snapshot
    store = CountingStore(LocalStore(str(tmp_path)))
    monkeypatch.setattr(location, "LocalStore", lambda _: store)
    clean_up_if_due(snapshot)
    assert store.total == 0
