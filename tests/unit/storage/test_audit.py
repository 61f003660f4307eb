"""Tests of the events for files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lancelake import events
from lancelake.events import Event
from lancelake.storage.instrumented import report_created
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    """Return the events of the test."""
    found: list[Event] = []
    events.listen(found.append)
    yield found
    events.ignore(found.append)


def test_files_of_the_table_are_reported(tmp_path: Path, heard: list[Event]) -> None:
    store = Location.parse(tmp_path).store
    store.create("_versions/1.manifest", b"1")
    store.put("notes.txt", b"2")
    store.get("notes.txt")
    store.delete_many(["_versions/1.manifest", "notes.txt"])
    report_created(Location.parse(tmp_path), "data/a.lance")
    facts = [(e.facts["mode"], e.facts["type"], e.facts["path"]) for e in heard]
    assert facts == [
        ("create", "manifest", "_versions/1.manifest"),
        ("delete", "manifest", "_versions/1.manifest"),
        ("create", "data", "data/a.lance"),
    ]


def test_without_a_listener_the_store_is_plain(tmp_path: Path) -> None:
    assert isinstance(Location.parse(tmp_path).store, LocalStore)
