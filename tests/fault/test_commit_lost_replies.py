"""Commits whose reply to the manifest creation is lost."""

from __future__ import annotations

import pytest

from lancelake.commit.candidate import CommitRequest, CommitResult
from lancelake.commit.loop import commit
from lancelake.errors import (
    ContentionError,
    StorageDeniedError,
    StorageError,
    UncertainCommitError,
)
from lancelake.format.operations import Append, Overwrite
from lancelake.storage.store import ObjectStore
from tests.support.failing_store import FailingCalls, InterceptedStore, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import SCHEMA, fragment, line_on, log, means, request, seed

CREATES = frozenset({"create"})
APPEND = request(Append(fragments=(fragment(7),)), unique=1)
RIVAL = request(Append(fragments=(fragment(8),)), unique=2)


@pytest.fixture
def store() -> DictStore:
    made = DictStore()
    seed(made)
    return made


def _commit(store: ObjectStore, asked: CommitRequest = APPEND) -> CommitResult:
    return commit(line_on(store), asked, means(store))


def _uuids(store: ObjectStore) -> list[str]:
    return [landed.transaction.uuid for landed in log(line_on(store)) if landed.transaction]


def test_a_create_whose_reply_was_lost_is_recognised(store: DictStore) -> None:
    result = _commit(FailingCalls([0], stop=Stop.AFTER, only=CREATES).on(store))
    assert (result.version, result.attempts, _uuids(store).count(APPEND.transaction.uuid)) == (
        2,
        1,
        1,
    )


def test_a_create_that_never_arrived_is_made_again(
    store: DictStore, caplog: pytest.LogCaptureFixture
) -> None:
    result = _commit(FailingCalls([0, 1], only=CREATES).on(store))
    assert (result.version, result.attempts, result.metrics.lost_replies) == (2, 3, 2)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 2
    assert all("the reply to the commit of version 2 of" in text for text in warnings)


def test_a_rival_between_two_lost_creates_is_followed(store: DictStore) -> None:
    failing = FailingCalls([0, 1], only=CREATES).on(store)
    tries = 0

    def around(call: str, path: str, carry_out):  # type: ignore[no-untyped-def]
        nonlocal tries
        tries += call == "create"
        if call == "create" and tries == 2:
            _commit(store, RIVAL)
        return carry_out()

    result = _commit(InterceptedStore(failing, around))
    assert result.version == 3
    assert _uuids(store)[1:] == [RIVAL.transaction.uuid, APPEND.transaction.uuid]


def test_creates_that_never_get_a_reply_leave_it_uncertain(store: DictStore) -> None:
    with pytest.raises(UncertainCommitError) as caught:
        _commit(FailingCalls(range(100), only=CREATES).on(store))
    assert caught.value.facts["uuid"] == APPEND.transaction.uuid


def test_a_refused_create_is_not_made_again(store: DictStore) -> None:
    calls = FailingCalls([0], only=CREATES, error=lambda: StorageDeniedError("no"))
    with pytest.raises(StorageDeniedError):
        _commit(calls.on(store))
    assert len(calls.calls) == 1


def test_a_disk_that_fails_after_it_named_the_file_is_no_failure(store: DictStore) -> None:
    calls = FailingCalls([0], only=CREATES, stop=Stop.AFTER, error=lambda: StorageError("fsync"))
    assert _commit(calls.on(store)).version == 2


def test_a_strict_overwrite_whose_reply_was_lost_is_recognised(store: DictStore) -> None:
    strict = request(Overwrite(fragments=(), schema=SCHEMA), unique=3, max_retries=0)
    result = _commit(FailingCalls([0], stop=Stop.AFTER, only=CREATES).on(store), strict)
    assert result.version == 2


@pytest.mark.parametrize(
    "rival", [RIVAL, request(Overwrite(fragments=(), schema=SCHEMA), unique=4)]
)
def test_a_strict_overwrite_after_another_commit_fails(
    store: DictStore, rival: CommitRequest
) -> None:
    _commit(store, rival)
    strict = request(Overwrite(fragments=(), schema=SCHEMA), unique=3, max_retries=0)
    with pytest.raises(ContentionError, match="Failed to commit the transaction after 0 retries"):
        _commit(store, strict)
