"""Memory stores live as long as the process."""

from __future__ import annotations

from lancelake.storage.location import Location


def test_same_name_is_the_same_store() -> None:
    Location.parse("memory://same/t").store.put("a", b"1")
    assert Location.parse("memory://same/t/").store.get("a") == b"1"


def test_other_name_is_another_store() -> None:
    Location.parse("memory://one/t").store.put("a", b"1")
    assert not Location.parse("memory://two/t").store.exists("a")


def test_child_sees_its_part() -> None:
    root = Location.parse("memory://parts/t")
    root.store.put("tree/b/a", b"1")
    assert root.child("tree/b").store.list_names("") == ["a"]
