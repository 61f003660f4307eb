"""Memory stores live as long as the process."""

from __future__ import annotations

from lancelake.storage.location import Location
from lancelake.storage.open import open_store


def test_same_name_is_the_same_store() -> None:
    open_store(Location.parse("memory://same/t")).put("a", b"1")
    assert open_store(Location.parse("memory://same/t/")).get("a") == b"1"


def test_other_name_is_another_store() -> None:
    open_store(Location.parse("memory://one/t")).put("a", b"1")
    assert not open_store(Location.parse("memory://two/t")).exists("a")


def test_child_sees_its_part() -> None:
    root = Location.parse("memory://parts/t")
    open_store(root).put("tree/b/a", b"1")
    assert open_store(root.child("tree/b")).list_names("") == ["a"]
