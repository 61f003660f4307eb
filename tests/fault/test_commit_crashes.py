"""What is left when a writer dies at any of its store calls, or the store fails there?"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lancelake.commit.loop import commit
from lancelake.commit.new_table import create_table
from lancelake.commit.request import CommitRequest
from lancelake.commit.result import CommitResult
from lancelake.commit.table_rules import TABLE_RULES
from lancelake.errors import LanceTableError, StorageError, UncertainCommitError
from lancelake.format.operations import Append, Overwrite
from lancelake.storage.store import ObjectStore
from tests.model.operations import changes
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import SCHEMA, fragment, line_on, log, means, request, seed

Work = Callable[[ObjectStore], CommitResult]


def _commit(asked: CommitRequest) -> Work:
    return lambda store: commit(line_on(store), asked, means(store, TABLE_RULES))


def _create(store: ObjectStore) -> CommitResult:
    asked = request(Overwrite(fragments=(), schema=SCHEMA), unique=1, read_version=0)
    return create_table(line_on(store), asked, means(store, TABLE_RULES))


def _seeded() -> DictStore:
    store = DictStore()
    base = seed(store)
    changes(store, base)
    return store


def _behind() -> tuple[DictStore, Work]:
    """Return a table where another writer was faster, and a delete that must be rebased."""
    store = DictStore()
    every = changes(store, seed(store))
    _commit(every["delete row 3"].request(unique=8))(store)
    return store, _commit(every["delete row 4"].request(unique=9))


def _cases() -> dict[str, tuple[DictStore, Work]]:
    append = request(Append(fragments=(fragment(7),)), unique=1)
    return {
        "create": (DictStore(), _create),
        "append": (_seeded(), _commit(append)),
        "rebase": _behind(),
    }


def _number_of_calls(name: str) -> int:
    store, work = _cases()[name]
    calls = FailingCalls()
    work(calls.on(store))
    return len(calls.calls)


POINTS = [(name, number) for name in _cases() for number in range(_number_of_calls(name))]


def _versions(store: ObjectStore) -> list[int]:
    return [landed.loaded.version for landed in log(line_on(store))]


def _uuids(store: ObjectStore) -> list[str]:
    return [landed.transaction.uuid for landed in log(line_on(store)) if landed.transaction]


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize(("name", "number"), POINTS)
def test_after_a_crash_the_same_commit_lands_exactly_once(
    name: str, number: int, stop: Stop
) -> None:
    store, work = _cases()[name]
    with pytest.raises(Crash):
        work(FailingCalls([number], stop=stop, error=Crash).on(store))
    before = _versions(store)
    assert before == list(range(1, len(before) + 1))
    result = work(store)
    uuids = _uuids(store)
    assert uuids.count(result.transaction.uuid) == 1
    assert len(uuids) == result.version


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize(("name", "number"), POINTS)
def test_a_store_that_fails_once_leaves_no_lie(name: str, number: int, stop: Stop) -> None:
    store, work = _cases()[name]
    before = _uuids(store)
    try:
        result = work(FailingCalls([number], stop=stop).on(store))
    except StorageError:
        assert _uuids(store) == before
    else:
        assert _uuids(store) == [*before, result.transaction.uuid]


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize(("name", "number"), POINTS)
def test_a_store_that_fails_from_some_call_on_leaves_no_lie(
    name: str, number: int, stop: Stop
) -> None:
    store, work = _cases()[name]
    before = _uuids(store)
    first = FailingCalls([number], stop=stop).on(store)
    try:
        result = work(FailingCalls(range(number + 1, 1000)).on(first))
    except UncertainCommitError as error:
        assert _uuids(store) in (before, [*before, error.facts["uuid"]])
    except LanceTableError:
        assert _uuids(store) == before
    else:
        assert _uuids(store) == [*before, result.transaction.uuid]


def test_a_commit_that_landed_is_not_failed_by_what_comes_after() -> None:
    store, work = _cases()["append"]
    calls = FailingCalls()
    work(calls.on(DictStore(store.objects)))
    created = next(n for n, (call, _) in enumerate(calls.calls) if call == "create")
    result = work(FailingCalls(range(created + 1, 1000)).on(store))
    assert result.version == 2
