"""Conditional puts whose reply is lost: the object that is there decides."""

from __future__ import annotations

import pytest

from lancelake.errors import (
    RequestConflictError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
)
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore, create_once
from tests.support.failing_store import FailingCalls, Stop

CREATES = frozenset({"create"})


@pytest.fixture
def store(request: pytest.FixtureRequest) -> ObjectStore:
    return Location.parse(f"memory://t/{request.node.name}").store


def test_a_free_path_is_written(store: ObjectStore) -> None:
    assert create_once(store, "a", b"mine")
    assert store.get("a") == b"mine"


def test_a_path_of_another_writer_is_left_alone(store: ObjectStore) -> None:
    store.put("a", b"theirs")
    assert not create_once(store, "a", b"mine")
    assert store.get("a") == b"theirs"


@pytest.mark.parametrize("stop", Stop)
def test_a_lost_reply_is_settled_by_the_content(store: ObjectStore, stop: Stop) -> None:
    calls = FailingCalls([0], stop=stop, only=CREATES)
    assert create_once(calls.on(store), "a", b"mine")
    assert store.get("a") == b"mine"


def test_a_conflict_with_another_request_is_tried_again(store: ObjectStore) -> None:
    calls = FailingCalls([0, 1], only=CREATES, error=lambda: RequestConflictError("conflict"))
    assert create_once(calls.on(store), "a", b"mine")


def test_a_lost_reply_at_a_path_of_another_writer(store: ObjectStore) -> None:
    store.put("a", b"theirs")
    assert not create_once(FailingCalls([0], only=CREATES).on(store), "a", b"mine")


def test_a_store_that_never_replies(store: ObjectStore) -> None:
    with pytest.raises(StorageUnavailableError):
        create_once(FailingCalls(range(99), only=CREATES).on(store), "a", b"mine")


def test_an_object_that_cannot_be_read_may_be_written(store: ObjectStore) -> None:
    def denied() -> BaseException:
        return StorageDeniedError("no")

    reading = FailingCalls([0], only=frozenset({"get"}), error=denied).on(store)
    lost = FailingCalls([0], stop=Stop.AFTER, only=CREATES).on(reading)
    with pytest.raises(StorageUnavailableError, match="may have been written"):
        create_once(lost, "a", b"mine")


def test_a_refused_request_is_not_repeated(store: ObjectStore) -> None:
    calls = FailingCalls([0], only=CREATES, error=lambda: StorageError("full"))
    with pytest.raises(StorageError, match="full"):
        create_once(calls.on(store), "a", b"mine")
    assert len(calls.calls) == 1
