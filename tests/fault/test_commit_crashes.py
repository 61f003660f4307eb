"""Crashes and store failures at every store call of a commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lancelake.commit.candidate import CommitRequest, CommitResult
from lancelake.commit.loop import clone_table, commit, create_table
from lancelake.errors import LanceTableError, StorageError, UncertainCommitError
from lancelake.format.ids import Version
from lancelake.format.operations import Clone, Overwrite
from lancelake.storage.store import ObjectStore
from tests.model.operations import MEM_WAL_ENTRY, Change, changes
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import SCHEMA, line_on, log, means, request, seed

SOURCE = "memory://source"
Work = Callable[[ObjectStore], CommitResult]


def _commit(asked: CommitRequest) -> Work:
    return lambda store: commit(line_on(store), asked, means(store))


def _create(store: ObjectStore) -> CommitResult:
    asked = request(Overwrite(fragments=(), schema=SCHEMA), unique=1, read_version=0)
    return create_table(line_on(store), asked, means(store))


def _clone(store: ObjectStore) -> CommitResult:
    operation = Clone(is_shallow=True, ref_name=None, ref_version=Version(1), ref_path=SOURCE)
    asked = request(operation, unique=1)
    source = seed(DictStore()).state
    how = means(store)
    return clone_table(line_on(store), asked, how, source=source, source_uri=SOURCE)


def _seeded() -> tuple[DictStore, dict[str, Change]]:
    store = DictStore()
    return store, changes(store, seed(store, indices=(MEM_WAL_ENTRY,)))


def _behind() -> tuple[DictStore, Work]:
    """Return a table where another writer was faster, and a delete that must be rebased."""
    store, every = _seeded()
    _commit(every["delete row 3"].request(unique=8))(store)
    return store, _commit(every["delete row 4"].request(unique=9))


def _all_cases() -> dict[str, tuple[DictStore, Work]]:
    store, every = _seeded()
    one_by_one = {
        name: (DictStore(store.objects), _commit(change.request(unique=1)))
        for name, change in every.items()
    }
    fresh = {"create": (DictStore(), _create), "clone": (DictStore(), _clone)}
    return fresh | one_by_one | {"rebase": _behind()}


CASES = _all_cases()


def _case(name: str) -> tuple[DictStore, Work]:
    store, work = CASES[name]
    return DictStore(store.objects), work


def _number_of_calls(name: str) -> int:
    store, work = _case(name)
    calls = FailingCalls()
    work(calls.on(store))
    return len(calls.calls)


POINTS = [(name, number) for name in CASES for number in range(_number_of_calls(name))]


def _versions(store: ObjectStore) -> list[int]:
    return [landed.snapshot.version for landed in log(line_on(store))]


def _uuids(store: ObjectStore) -> list[str]:
    return [landed.transaction.uuid for landed in log(line_on(store)) if landed.transaction]


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize(("name", "number"), POINTS)
def test_after_a_crash_the_same_commit_lands_exactly_once(
    name: str, number: int, stop: Stop
) -> None:
    store, work = _case(name)
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
def test_a_store_that_fails_once_leaves_no_false_state(name: str, number: int, stop: Stop) -> None:
    store, work = _case(name)
    before = _uuids(store)
    try:
        result = work(FailingCalls([number], stop=stop).on(store))
    except StorageError:
        assert _uuids(store) == before
    else:
        assert _uuids(store) == [*before, result.transaction.uuid]


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize(("name", "number"), POINTS)
def test_a_store_that_fails_from_some_call_on_leaves_no_false_state(
    name: str, number: int, stop: Stop
) -> None:
    store, work = _case(name)
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
    store, work = _case("append")
    calls = FailingCalls()
    work(calls.on(DictStore(store.objects)))
    created = next(n for n, (call, _) in enumerate(calls.calls) if call == "create")
    result = work(FailingCalls(range(created + 1, 1000)).on(store))
    assert result.version == 2
