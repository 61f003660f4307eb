"""Every store call is counted."""

from __future__ import annotations

from pathlib import Path

from lancelake.storage.location import Location
from tests.support.counting_store import CountingStore


def counting(name: str) -> CountingStore:
    return CountingStore(Location.parse(f"memory://counting/{name}").store)


def test_calls_are_counted_by_kind() -> None:
    store = counting("kinds")
    store.put("a", b"123")
    store.get("a")
    store.get("a")
    store.list_names("")
    assert store.calls == {"put": 1, "get": 2, "list_names": 1}
    assert store.total == 4


def test_bytes_are_counted() -> None:
    store = counting("bytes")
    store.put("a", b"123")
    store.put_stream("b", [b"4567"])
    store.get_suffix("a", length=2)
    assert (store.bytes_written, store.bytes_read) == (7, 2)


def test_paths_are_kept() -> None:
    store = counting("paths")
    store.delete_many(["a", "b"])
    assert store.paths == [("delete_many", "a"), ("delete_many", "b")]
    assert store.total == 1


def test_reset_forgets() -> None:
    store = counting("reset")
    store.put("a", b"1")
    store.reset()
    assert (store.total, store.paths, store.bytes_written) == (0, [], 0)


def test_question_without_an_answer_costs_nothing(tmp_path: Path) -> None:
    store = CountingStore(Location.parse(tmp_path).store)
    assert store.smallest_names("v", limit=1) is None
    assert store.total == 0
