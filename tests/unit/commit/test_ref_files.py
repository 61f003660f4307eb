from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lancelake.clock import SystemIds
from lancelake.commit.ref_files import (
    RefTarget,
    annotate_branch,
    annotate_tag,
    create_branch,
    create_tag,
    missing_ref,
    move_tag,
    remove_branch,
    remove_tag,
    timestamp_text,
)
from lancelake.errors import (
    AlreadyExistsError,
    ContentionError,
    InvalidNameError,
    RefNotFoundError,
    UncertainCommitError,
)
from lancelake.format import layout, refs
from lancelake.format.ids import Version
from lancelake.format.refs import Fork
from lancelake.storage.location import Location
from tests.support.failing_store import FailingCalls, InterceptedStore, Stop
from tests.support.scheduled_store import DictStore
from tests.support.set_clock import ManualClock

TARGET = RefTarget(branch=None, version=Version(3), manifest_size=500)
NEXT = RefTarget(branch="side", version=Version(4), manifest_size=600)
CREATES = frozenset({"create"})
NS = 1_794_765_572_123_456_789


def test_a_tag_document_has_the_keys_and_times_of_current_releases() -> None:
    store = DictStore()
    create_tag(store, "v1", TARGET, clock=ManualClock(ns=NS))
    assert json.loads(store.objects[layout.tag("v1")]) == {
        "branch": None,
        "version": 3,
        "createdAt": "2026-11-15T17:59:32.123456789Z",
        "updatedAt": "2026-11-15T17:59:32.123456789Z",
        "manifestSize": 500,
        "metadata": {},
    }


def test_a_tag_that_exists_is_not_replaced() -> None:
    store = DictStore()
    create_tag(store, "v1", TARGET, clock=ManualClock(ns=1))
    with pytest.raises(AlreadyExistsError, match="tag v1 already exists"):
        create_tag(store, "v1", NEXT, clock=ManualClock(ns=2))
    assert refs.decode_tag(store.objects[layout.tag("v1")]).version == 3


def test_of_many_who_create_a_tag_one_succeeds(tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = Location.parse(tmp_path).store

    def create(number: int) -> bool:
        try:
            create_tag(store, "v1", TARGET, clock=ManualClock(ns=number))
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(create, range(8))) == 1


def test_moving_a_tag_keeps_when_it_was_made_and_what_others_wrote() -> None:
    made = {"version": 1, "branch": None, "createdAt": "then", "metadata": {"a": "b"}, "x": 1}
    store = DictStore({layout.tag("v1"): json.dumps(made).encode()})
    moved = move_tag(store, "v1", NEXT, clock=ManualClock(ns=NS))
    assert (moved.version, moved.branch, moved.created_at) == (4, "side", "then")
    body = json.loads(store.objects[layout.tag("v1")])
    assert (body["metadata"], body["x"]) == ({"a": "b"}, 1)


def test_who_notes_and_who_moves_a_tag_lose_nothing_of_each_other() -> None:
    inner = DictStore()
    create_tag(inner, "v1", TARGET, clock=ManualClock())

    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        if call == "swap" and not refs.decode_tag(inner.get(path)).metadata:
            annotate_tag(inner, "v1", {"a": "b"})
        return carry_out()

    move_tag(InterceptedStore(inner, around), "v1", NEXT, clock=ManualClock())
    found = refs.decode_tag(inner.objects[layout.tag("v1")])
    assert (found.version, dict(found.metadata)) == (4, {"a": "b"})


@pytest.mark.parametrize("stop", Stop)
def test_a_tag_whose_reply_was_lost_is_moved(stop: Stop) -> None:
    inner = DictStore()
    create_tag(inner, "v1", TARGET, clock=ManualClock())
    store = FailingCalls([0], stop=stop, only=frozenset({"swap"})).on(inner)
    assert move_tag(store, "v1", NEXT, clock=ManualClock()).version == 4
    assert refs.decode_tag(inner.objects[layout.tag("v1")]).version == 4


def test_a_tag_that_always_changes_is_given_up() -> None:
    inner = DictStore()
    create_tag(inner, "v1", TARGET, clock=ManualClock())
    clock = ManualClock()

    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        if call == "swap":
            clock.sleep(1)
            move_tag(inner, "v1", TARGET, clock=clock)
        return carry_out()

    with pytest.raises(ContentionError, match="tag v1 was changed by other writers"):
        move_tag(InterceptedStore(inner, around), "v1", NEXT, clock=ManualClock())


def test_a_tag_that_is_removed_meanwhile_is_not_created_again() -> None:
    inner = DictStore()
    create_tag(inner, "v1", TARGET, clock=ManualClock())

    def around(call: str, path: str, carry_out: Callable[[], Any]) -> Any:
        if call == "swap":
            inner.delete(path)
        return carry_out()

    with pytest.raises(RefNotFoundError, match="tag v1 does not exist"):
        move_tag(InterceptedStore(inner, around), "v1", NEXT, clock=ManualClock())
    assert inner.objects == {}


def test_what_is_noted_with_a_branch_is_replaced() -> None:
    store = DictStore()
    create_branch(store, "b", TARGET, lineage=(), clock=ManualClock(), ids=SystemIds(0))
    annotate_branch(store, "b", {"a": "b"})
    annotate_branch(store, "b", {"c": "d"})
    assert json.loads(store.objects[layout.branch("b")])["metadata"] == {"c": "d"}


def test_a_removed_tag_is_gone() -> None:
    store = DictStore()
    create_tag(store, "v1", TARGET, clock=ManualClock())
    remove_tag(store, "v1")
    assert store.objects == {}


@pytest.mark.parametrize("change", [remove_tag, remove_branch])
def test_removing_an_absent_ref_is_an_error(change) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RefNotFoundError, match="does not exist"):
        change(DictStore(), "none")


def test_a_branch_that_is_taken_for_a_tag_is_named() -> None:
    store = DictStore()
    create_branch(store, "b/c", TARGET, lineage=(), clock=ManualClock(), ids=SystemIds(0))
    with pytest.raises(RefNotFoundError, match="tag b/c does not exist: b/c is a branch"):
        raise missing_ref(store, layout.tag("b/c"), "tag b/c")


def test_moving_an_absent_tag_is_an_error() -> None:
    with pytest.raises(RefNotFoundError, match="tag none does not exist"):
        move_tag(DictStore(), "none", NEXT, clock=ManualClock())


def test_a_branch_extends_the_lineage_of_its_parent() -> None:
    store = DictStore()
    parents = (Fork(version=Version(1), uuid="0" * 32),)
    create_branch(store, "a/b", NEXT, lineage=parents, clock=ManualClock(ns=NS), ids=SystemIds(0))
    body = json.loads(store.objects["_refs/branches/a%2Fb.json"])
    assert (body["parentBranch"], body["parentVersion"]) == ("side", 4)
    assert body["createAt"] == NS // 10**9
    mapping = body["identifier"]["version_mapping"]
    assert mapping[0] == [1, "0" * 32]
    assert (mapping[1][0], len(mapping[1][1])) == (4, 32)


def test_a_branch_that_exists_is_not_replaced() -> None:
    store = DictStore()
    tools = {"lineage": (), "clock": ManualClock(), "ids": SystemIds(0)}
    create_branch(store, "b", TARGET, **tools)
    with pytest.raises(AlreadyExistsError, match="branch b already exists"):
        create_branch(store, "b", TARGET, **tools)


@pytest.mark.parametrize("stop", Stop)
def test_a_tag_whose_reply_was_lost_is_created_once(stop: Stop) -> None:
    store = FailingCalls([0], stop=stop, only=CREATES).on(DictStore())
    assert create_tag(store, "v1", TARGET, clock=ManualClock()).version == 3


def test_a_store_that_never_replies_leaves_it_uncertain() -> None:
    store = FailingCalls(range(100)).on(DictStore())
    with pytest.raises(UncertainCommitError):
        create_tag(store, "v1", TARGET, clock=ManualClock())


@pytest.mark.parametrize("name", ["", "a/b", "..", "x.lock"])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        create_tag(DictStore(), name, TARGET, clock=ManualClock())


def test_times_have_nine_digits() -> None:
    assert timestamp_text(5) == "1970-01-01T00:00:00.000000005Z"
