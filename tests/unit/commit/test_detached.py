from __future__ import annotations

import pytest

from lancelake.commit.candidate import CommitResult
from lancelake.commit.loop import commit_detached
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import ContentionError, UnsupportedError
from lancelake.format.layout import ManifestNaming, is_detached
from lancelake.format.operations import Append
from lancelake.storage.store import ObjectStore
from tests.support.failing_store import FailingCalls, InterceptedStore, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import fragment, line_on, log, means, request, seed

CREATES = frozenset({"create"})


def _commit(
    store: ObjectStore, base: Snapshot, *, unique: int = 1, max_retries: int = 20
) -> CommitResult:
    asked = request(Append(fragments=(fragment(7),)), unique=unique, max_retries=max_retries)
    tools = means(store, seed=unique)
    return commit_detached(line_on(store), asked, tools, base=base)


def test_a_detached_version_stays_out_of_the_main_line() -> None:
    store = DictStore()
    result = _commit(store, seed(store))
    assert is_detached(result.version)
    assert [landed.snapshot.version for landed in log(line_on(store))] == [1]


def test_a_detached_version_is_found_by_its_number() -> None:
    store = DictStore()
    result = _commit(store, seed(store))
    assert line_on(store).handler.find(result.version) == result.snapshot.name


def test_a_detached_version_may_follow_another() -> None:
    store = DictStore()
    first = _commit(store, seed(store))
    second = _commit(store, first.snapshot, unique=2)
    assert len(second.state.manifest.fragments) == 4


def test_a_table_with_old_names_has_none() -> None:
    store = DictStore()
    with pytest.raises(UnsupportedError, match="v1 manifest paths"):
        _commit(store, seed(store, naming=ManifestNaming.V1))


@pytest.mark.parametrize("stop", Stop)
def test_a_detached_commit_whose_reply_was_lost_lands_once(stop: Stop) -> None:
    store = DictStore()
    base = seed(store)
    _commit(FailingCalls([0], stop=stop, only=CREATES).on(store), base)
    assert len(store.list_names("_versions")) == 2


def test_a_number_that_is_taken_is_replaced_by_another() -> None:
    store = DictStore()
    base = seed(store)
    taken: list[str] = []

    def around(call: str, path: str, carry_out):  # type: ignore[no-untyped-def]
        if call == "create" and not taken:
            taken.append(path)
            store.put(path, store.get(f"_versions/{base.name.name}"))
        return carry_out()

    assert _commit(InterceptedStore(store, around), base).attempts == 2


def test_when_every_number_is_taken_it_gives_up() -> None:
    store = DictStore()
    base = seed(store)

    def around(call: str, path: str, carry_out):  # type: ignore[no-untyped-def]
        if call == "create":
            store.put(path, store.get(f"_versions/{base.name.name}"))
        return carry_out()

    with pytest.raises(ContentionError):
        _commit(InterceptedStore(store, around), base, max_retries=3)
