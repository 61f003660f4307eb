"""The obstore adapter: features that the clients lack."""

from __future__ import annotations

import subprocess
import sys

import obstore
import pytest
from obstore.exceptions import GenericError
from obstore.store import MemoryStore

from lancelake.storage.obstore_store import Abilities, ObstoreStore


@pytest.fixture
def client() -> MemoryStore:
    return MemoryStore()


def test_suffix_is_read_by_size_where_there_are_no_suffix_requests(
    client: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObstoreStore(client, prefix="t", abilities=Abilities(reads_suffixes=False))
    store.put("a", b"0123456789")
    monkeypatch.delattr(obstore, "get")
    assert store.get_suffix("a", length=4) == (b"6789", 10)
    assert store.get_suffix("a", length=40) == (b"0123456789", 10)


def test_names_have_no_order_where_the_store_keeps_none(client: MemoryStore) -> None:
    store = ObstoreStore(client, prefix="t", abilities=Abilities(lists_in_order=False))
    store.put("a", b"")
    assert store.smallest_names("", limit=1) is None


def test_prefix_is_a_whole_name(client: MemoryStore) -> None:
    ObstoreStore(client, prefix="table2", abilities=Abilities()).put("a", b"")
    assert list(ObstoreStore(client, prefix="table", abilities=Abilities()).list()) == []


def test_delete_many_continues_after_an_absent_object(
    client: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObstoreStore(client, prefix="t", abilities=Abilities())
    store.put("b", b"")
    delete = obstore.delete

    def strict(client: MemoryStore, keys: str | list[str]) -> None:
        if keys == "t/absent" or "t/absent" in keys:
            raise FileNotFoundError("t/absent")
        delete(client, keys)

    monkeypatch.setattr(obstore, "delete", strict)
    store.delete_many(["absent", "b"])
    assert not store.exists("b")


def test_copy_too_large_for_the_server_is_streamed(
    client: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ObstoreStore(client, prefix="t", abilities=Abilities())
    store.put("a", b"0123456789")

    def too_large(*_: object) -> None:
        raise GenericError("copy source is larger than the maximum allowable size: 5368709120")

    monkeypatch.setattr(obstore, "copy", too_large)
    store.copy("a", "b")
    assert store.get("b") == b"0123456789"


FORK = """
import os
from lancelake.storage.location import Location

store = Location.parse("memory://fork/t").store
store.put("a", b"")
child = os.fork()
if child == 0:
    try:
        store.get("a")
    except NotImplementedError:
        os._exit(42)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_forked_child_gets_an_error_instead_of_waiting() -> None:
    run = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "42"
