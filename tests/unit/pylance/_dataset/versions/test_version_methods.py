"""Versions of a dataset."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import time_reference
from lancelake.pylance._dataset.versions import version_of
from lancelake.table.history import VersionFacts, VersionSummary
from tests.support.read_tables import versioned


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of four versions, with tags and a branch."""
    path = tmp_path_factory.mktemp("dataset") / "t.lance"
    versioned(path)
    return path


def test_other_versions_leave_the_open_one_alone(root: Path) -> None:
    now = lance.dataset(root)
    assert now.checkout_version(1).version == 1
    assert now.version == 4


def test_latest_version_is_that_of_the_line(root: Path) -> None:
    assert lance.dataset(root, 1).latest_version == 4
    assert lance.dataset(root, ("feat/x", 2)).latest_version == 3


def test_dataset_moves_to_the_latest_version(tmp_path: Path) -> None:
    official.write_dataset(pa.table({"a": [1]}), tmp_path / "t")
    found = lance.dataset(tmp_path / "t")
    official.write_dataset(pa.table({"a": [2]}), tmp_path / "t", mode="append")
    assert found.count_rows() == 1
    found.checkout_latest()
    assert (found.version, found.count_rows()) == (2, 2)


def test_versions_are_those_of_pylance(root: Path) -> None:
    ours, theirs = lance.dataset(root).versions(), official.dataset(root).versions()
    assert [v["version"] for v in ours] == [v["version"] for v in theirs]
    assert [v["metadata"] for v in ours] == [v["metadata"] for v in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert abs(mine["timestamp"] - other["timestamp"]) <= timedelta(microseconds=1)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Be in a time zone where clocks are set back."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("hours", [0, 1])
def test_time_of_a_version_is_unambiguous_when_clocks_are_set_back(hours: int) -> None:
    at = datetime(2026, 10, 25, hours, 30, 0, 123456, UTC)
    time_ns = int(at.timestamp()) * 10**9 + 123456789
    summary = VersionSummary(**dict.fromkeys((f.name for f in fields(VersionSummary)), 0))
    facts = VersionFacts(version=1, timestamp_ns=time_ns, summary=summary)
    shown = version_of(facts)["timestamp"]
    assert shown.replace(fold=0) == datetime(2026, 10, 25, 2, 30, 0, 123456)
    assert time_reference(shown) == time_reference(at)
