"""Conformance suite of stores: each test takes an empty store and fails for one reason."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
)
from lancelake.storage.store import ObjectChunks, ObjectStore, copy_across

Law = Callable[[ObjectStore], None]

NAMES = (
    "feature%2Fx.json",
    "with blank",
    "hash#tag",
    "question?mark",
    "star*",
    "ünïcode-日本",
    "100%",
    "plus+and&equals=",
    "[brackets]{braces}",
    "~tilde",
    "..dots...",
    "18446744073709551614.manifest",
)


def reads_back_what_was_put(store: ObjectStore) -> None:
    store.put("a/b", b"bytes")
    assert store.get("a/b") == b"bytes"


def put_replaces(store: ObjectStore) -> None:
    store.put("a", b"first, and longer")
    store.put("a", b"second")
    assert store.get("a") == b"second"


def keeps_empty_objects(store: ObjectStore) -> None:
    store.put("empty", b"")
    assert store.get("empty") == b""


def stream_is_joined(store: ObjectStore) -> None:
    store.put_stream("s", iter([b"one", b"", b"two"]))
    assert store.get("s") == b"onetwo"


def stream_may_be_large(store: ObjectStore) -> None:
    chunk = bytes(range(256)) * 4096
    store.put_stream("s", (chunk for _ in range(12)))
    assert store.head("s").size_bytes == 12 * len(chunk)
    assert store.get_range("s", start=11 * len(chunk), length=len(chunk)) == chunk


def stream_may_be_empty(store: ObjectStore) -> None:
    store.put_stream("s", iter([]))
    assert store.get("s") == b""


def failing_stream_leaves_nothing(store: ObjectStore) -> None:
    def chunks() -> Iterator[bytes]:
        yield bytes(12_000_000)
        raise StorageError("the source broke")

    with pytest.raises(StorageError):
        store.put_stream("s", chunks())
    assert list(store.list()) == []


def range_is_exact(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.get_range("a", start=2, length=3) == b"234"


def range_may_reach_the_end(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.get_range("a", start=7, length=3) == b"789"


def empty_range_is_empty(store: ObjectStore) -> None:
    assert store.get_range("absent", start=5, length=0) == b""


def range_across_the_end_is_an_error(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(StorageError, match="ends before byte 11") as caught:
        store.get_range("a", start=8, length=3)
    assert not isinstance(caught.value, StorageUnavailableError)


def range_behind_the_end_is_an_error(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(StorageError, match="ends before byte 23") as caught:
        store.get_range("a", start=20, length=3)
    assert not isinstance(caught.value, StorageUnavailableError)


def negative_range_is_refused(store: ObjectStore) -> None:
    with pytest.raises(InvalidRequestError):
        store.get_range("a", start=-1, length=3)


def suffix_gives_last_bytes_and_size(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.get_suffix("a", length=4) == (b"6789", 10)


def suffix_longer_than_object_gives_all(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.get_suffix("a", length=100) == (b"0123456789", 10)


def suffix_of_empty_object_is_empty(store: ObjectStore) -> None:
    store.put("a", b"")
    assert store.get_suffix("a", length=4) == (b"", 0)


def suffix_of_no_bytes_gives_the_size(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    assert store.get_suffix("a", length=0) == (b"", 10)


def absent_get_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.get("a/b/absent")


def absent_range_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.get_range("absent", start=0, length=1)


def absent_suffix_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.get_suffix("absent", length=1)


def absent_head_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        store.head("absent")


def folder_is_no_object(store: ObjectStore) -> None:
    store.put("dir/a", b"1")
    assert not store.exists("dir")
    with pytest.raises(ObjectNotFoundError):
        store.get("dir")


def object_below_an_object_is_not_found(store: ObjectStore) -> None:
    store.put("a", b"1")
    with pytest.raises(ObjectNotFoundError):
        store.get("a/b")


def head_describes(store: ObjectStore) -> None:
    store.put("dir/a", b"12345")
    info = store.head("dir/a")
    assert (info.path, info.size_bytes) == ("dir/a", 5)
    assert info.modified_ns > 1_000_000_000 * 1_000_000_000
    assert info.e_tag


def e_tag_changes_with_the_bytes(store: ObjectStore) -> None:
    store.put("a", b"1")
    before = store.head("a").e_tag
    store.put("a", b"22")
    assert store.head("a").e_tag != before


def exists_tells(store: ObjectStore) -> None:
    store.put("a", b"1")
    assert store.exists("a")
    assert not store.exists("b")


def list_is_recursive(store: ObjectStore) -> None:
    for path in ("x/a", "x/y/b", "x/y/z/c", "other"):
        store.put(path, b"12")
    found = {info.path: info.size_bytes for info in store.list("x")}
    assert found == {"x/a": 2, "x/y/b": 2, "x/y/z/c": 2}


def list_of_root_gives_everything(store: ObjectStore) -> None:
    for path in ("a", "x/b"):
        store.put(path, b"")
    assert {info.path for info in store.list()} == {"a", "x/b"}


def list_agrees_with_head(store: ObjectStore) -> None:
    store.put("x/a", b"123")
    (listed,) = store.list("x")
    head = store.head("x/a")
    assert (listed.path, listed.size_bytes, listed.e_tag) == (head.path, 3, head.e_tag)
    # Some stores tell the time to the second in one of the two.
    assert abs(listed.modified_ns - head.modified_ns) < 1_000_000_000


def list_takes_whole_names(store: ObjectStore) -> None:
    store.put("dir/a", b"")
    store.put("directory/b", b"")
    assert [info.path for info in store.list("dir")] == ["dir/a"]


def missing_folder_is_empty(store: ObjectStore) -> None:
    assert list(store.list("absent")) == []
    assert store.list_names("absent/deeper") == []
    assert store.list_dirs("absent") == []
    assert not store.smallest_names("absent", limit=1)


def list_names_is_one_level(store: ObjectStore) -> None:
    for path in ("v/1.manifest", "v/2.manifest", "v/sub/3", "w/4"):
        store.put(path, b"")
    assert sorted(store.list_names("v")) == ["1.manifest", "2.manifest"]


def list_dirs_is_one_level(store: ObjectStore) -> None:
    for path in ("i/u1/a", "i/u2/b/c", "i/file"):
        store.put(path, b"")
    assert sorted(store.list_dirs("i")) == ["u1", "u2"]


def root_lists_by_level(store: ObjectStore) -> None:
    store.put("file", b"")
    store.put("dir/a", b"")
    assert store.list_names("") == ["file"]
    assert store.list_dirs("") == ["dir"]


def smallest_names_are_in_order(store: ObjectStore) -> None:
    for name in ("3", "1", "2", "10", "a/0"):
        store.put(f"v/{name}", b"")
    names = store.smallest_names("v", limit=3)
    assert names is None or names == ["1", "10", "2"]


def odd_names_stay_as_they_are(store: ObjectStore) -> None:
    for name in NAMES:
        store.put(f"odd dir%2F#1x/{name}", name.encode())
    assert sorted(store.list_names("odd dir%2F#1x")) == sorted(NAMES)
    assert {i.path for i in store.list()} == {f"odd dir%2F#1x/{name}" for name in NAMES}
    assert [store.get(f"odd dir%2F#1x/{name}") for name in NAMES] == [n.encode() for n in NAMES]


def unplain_paths_are_refused(store: ObjectStore) -> None:
    for path in ("", "/a", "a/", "a//b", "../a", "a/../b", "a/.", "nul\0"):
        with pytest.raises(InvalidRequestError):
            store.put(path, b"")
        with pytest.raises(InvalidRequestError):
            store.get(path)


def create_writes_once(store: ObjectStore) -> None:
    store.create("v/1", b"first")
    with pytest.raises(AlreadyExistsError):
        store.create("v/1", b"second")
    assert store.get("v/1") == b"first"


def refused_create_leaves_nothing(store: ObjectStore) -> None:
    store.create("v/1", b"first")
    with pytest.raises(AlreadyExistsError):
        store.create("v/1", b"second")
    assert [info.path for info in store.list()] == ["v/1"]


def create_respects_a_put(store: ObjectStore) -> None:
    store.put("a", b"1")
    with pytest.raises(AlreadyExistsError):
        store.create("a", b"2")


def create_after_delete_succeeds(store: ObjectStore) -> None:
    store.create("a", b"1")
    store.delete("a")
    store.create("a", b"2")
    assert store.get("a") == b"2"


def one_of_racing_creates_wins(store: ObjectStore) -> None:
    racers = 8
    gate = threading.Barrier(racers)

    def wins(path: str, me: bytes) -> bool:
        gate.wait()
        try:
            store.create(path, me)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(racers) as pool:
        for race in range(4):
            path = f"race/{race}"
            runners = {b"%d" % n: pool.submit(wins, path, b"%d" % n) for n in range(racers)}
            assert [me for me, won in runners.items() if won.result()] == [store.get(path)]


def swap_replaces_what_was_expected(store: ObjectStore) -> None:
    store.put("a/b", b"old")
    assert store.swap("a/b", b"new", expected=b"old")
    assert store.get("a/b") == b"new"


def swap_leaves_what_was_not_expected(store: ObjectStore) -> None:
    store.put("a", b"other")
    assert not store.swap("a", b"new", expected=b"old")
    assert store.get("a") == b"other"


def swap_of_absent_is_not_found(store: ObjectStore) -> None:
    store.put("a/b", b"there")
    for path in ("a/c", "d/e"):
        with pytest.raises(ObjectNotFoundError):
            store.swap(path, b"new", expected=b"old")


def racing_swaps_lose_nothing(store: ObjectStore) -> None:
    store.put("a", b"")

    def add(number: int) -> None:
        mine = bytes([number])
        while not store.swap("a", (before := store.get("a")) + mine, expected=before):
            pass

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(12)))
    assert sorted(store.get("a")) == list(range(12))


def copy_keeps_both(store: ObjectStore) -> None:
    store.put("a", b"bytes")
    store.put("sub/b", b"old")
    store.copy("a", "sub/b")
    assert (store.get("a"), store.get("sub/b")) == (b"bytes", b"bytes")


def copy_of_absent_is_not_found(store: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError, match="absent"):
        store.copy("absent", "b")


def copy_into_new_folder_works(store: ObjectStore) -> None:
    store.put("a", b"bytes")
    store.copy("a", "new/folder/b")
    assert store.get("new/folder/b") == b"bytes"


def copy_across_is_whole(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    copy_across(ObjectChunks(store=store, path="a", chunk_bytes=4), store, "b")
    assert store.get("b") == b"0123456789"


def delete_removes(store: ObjectStore) -> None:
    store.put("a", b"1")
    store.delete("a")
    assert not store.exists("a")


def delete_of_absent_is_fine(store: ObjectStore) -> None:
    store.delete("absent/a")


def delete_many_removes_those_there(store: ObjectStore) -> None:
    for path in ("a", "b", "c"):
        store.put(path, b"")
    store.delete_many(iter(["a", "absent", "c"]))
    assert [info.path for info in store.list()] == ["b"]


def delete_many_of_none_is_fine(store: ObjectStore) -> None:
    store.delete_many([])


STORE_LAWS: tuple[Law, ...] = (
    reads_back_what_was_put,
    put_replaces,
    keeps_empty_objects,
    stream_is_joined,
    stream_may_be_large,
    stream_may_be_empty,
    failing_stream_leaves_nothing,
    range_is_exact,
    range_may_reach_the_end,
    empty_range_is_empty,
    range_across_the_end_is_an_error,
    range_behind_the_end_is_an_error,
    negative_range_is_refused,
    suffix_gives_last_bytes_and_size,
    suffix_longer_than_object_gives_all,
    suffix_of_empty_object_is_empty,
    suffix_of_no_bytes_gives_the_size,
    absent_get_is_not_found,
    absent_range_is_not_found,
    absent_suffix_is_not_found,
    absent_head_is_not_found,
    folder_is_no_object,
    object_below_an_object_is_not_found,
    head_describes,
    e_tag_changes_with_the_bytes,
    exists_tells,
    list_is_recursive,
    list_of_root_gives_everything,
    list_agrees_with_head,
    list_takes_whole_names,
    missing_folder_is_empty,
    list_names_is_one_level,
    list_dirs_is_one_level,
    root_lists_by_level,
    smallest_names_are_in_order,
    odd_names_stay_as_they_are,
    unplain_paths_are_refused,
    create_writes_once,
    refused_create_leaves_nothing,
    create_respects_a_put,
    create_after_delete_succeeds,
    one_of_racing_creates_wins,
    swap_replaces_what_was_expected,
    swap_leaves_what_was_not_expected,
    swap_of_absent_is_not_found,
    racing_swaps_lose_nothing,
    copy_keeps_both,
    copy_of_absent_is_not_found,
    copy_into_new_folder_works,
    copy_across_is_whole,
    delete_removes,
    delete_of_absent_is_fine,
    delete_many_removes_those_there,
    delete_many_of_none_is_fine,
)

each_store_law = pytest.mark.parametrize("law", STORE_LAWS, ids=lambda law: law.__name__)
