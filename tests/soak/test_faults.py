"""Injected store faults occur as configured, and are reported."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import lancelake.storage.location as opening
from lancelake.errors import StorageUnavailableError
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from soak.endpoint import BUCKET, endpoint
from soak.faulty_store import Faults, install
from soak.journal import Journal


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log, and let stores be as they were afterwards."""
    names: Any = opening
    monkeypatch.setattr(opening, "LocalStore", names.LocalStore)
    monkeypatch.setattr(opening, "cloud_store", names.cloud_store)
    return tmp_path / "log.jsonl"


def faulty(log: Path, faults: Faults) -> ObjectStore:
    """Return a store in an empty folder."""
    install(faults, "seed", Journal(str(log), "0.0", "ours"))
    folder = log.parent / "store"
    folder.mkdir()
    return Location.parse(folder).store


def told(log: Path) -> list[str]:
    """Return which faults were told."""
    return [json.loads(line)["what"] for line in log.read_text().splitlines()]


def test_a_call_that_fails_is_not_carried_out(log: Path) -> None:
    store = faulty(log, Faults(fail=1.0))
    with pytest.raises(StorageUnavailableError):
        store.create("a", b"a")
    assert not (log.parent / "store" / "a").exists()
    assert told(log) == ["failed"]


def test_a_call_whose_reply_is_lost_is_carried_out(log: Path) -> None:
    store = faulty(log, Faults(lost_create=1.0))
    with pytest.raises(StorageUnavailableError):
        store.create("a", b"a")
    assert store.get("a") == b"a"
    assert told(log) == ["reply lost"]


def test_a_lost_reply_hides_what_it_said(log: Path) -> None:
    store = faulty(log, Faults(lost_create=1.0))
    for _ in range(2):
        with pytest.raises(StorageUnavailableError):
            store.create("a", b"a")


def test_the_endpoint_fails_on_one_port_and_not_on_the_other(tmp_path: Path) -> None:
    log = tmp_path / "endpoint.jsonl"
    with endpoint("seed", log, {"fail": 1.0}) as (calm, failing):
        with urllib.request.urlopen(f"http://127.0.0.1:{calm}/{BUCKET}?list-type=2") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"http://127.0.0.1:{failing}/{BUCKET}?list-type=2")
    assert told(log) == ["failed"]
