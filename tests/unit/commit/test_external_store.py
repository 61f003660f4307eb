from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from lancelake.commit.external_store import PublishedEntry
from lancelake.commit.handler import PublishedVersion, Taken, Unknown
from lancelake.commit.loop import commit
from lancelake.errors import CorruptTableError, StorageUnavailableError
from lancelake.format.layout import DETACHED_BIT, ManifestNaming, manifest_name
from lancelake.format.operations import Append
from tests.support.failing_store import Crash, FailingCalls, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import fragment, means, request, seed
from tests.unit.commit.external_table import DictEntries, external_line

NAME = manifest_name(2, ManifestNaming.V2)
FINAL = f"_versions/{NAME}"
STAGED = f"{FINAL}-staged"


def test_a_created_manifest_ends_under_its_own_name() -> None:
    store, entries = DictStore(), DictEntries()
    assert external_line(store, entries).handler.create(2, NAME, b"bytes") == PublishedVersion()
    assert store.objects == {FINAL: b"bytes"}
    assert entries.entries == {2: PublishedEntry(version=2, path=FINAL, size_bytes=5)}


def test_a_recorded_version_is_taken_and_nothing_is_left_aside() -> None:
    store, entries = DictStore(), DictEntries()
    external_line(store, entries).handler.create(2, NAME, b"first")
    assert external_line(store, entries, seed=1).handler.create(2, NAME, b"second") == Taken()
    assert store.objects == {FINAL: b"first"}


def test_a_lost_reply_of_the_service_is_unknown_and_keeps_the_staged_manifest() -> None:
    class Silent(DictEntries):
        def put_if_not_exists(self, entry: PublishedEntry) -> bool:
            super().put_if_not_exists(entry)
            raise StorageUnavailableError("no reply")

    store = DictStore()
    outcome = external_line(store, Silent()).handler.create(2, NAME, b"bytes")
    assert isinstance(outcome, Unknown)
    assert list(store.objects.values()) == [b"bytes"]


def test_an_entry_of_an_earlier_try_of_the_same_request_is_mine() -> None:
    class Repeating(DictEntries):
        def put_if_not_exists(self, entry: PublishedEntry) -> bool:
            super().put_if_not_exists(entry)
            return False

    store = DictStore()
    assert external_line(store, Repeating()).handler.create(2, NAME, b"bytes") == PublishedVersion()


def test_a_version_that_was_only_recorded_is_finished_by_whoever_finds_it() -> None:
    store = DictStore({STAGED: b"bytes"})
    entries = DictEntries({2: PublishedEntry(version=2, path=STAGED, size_bytes=5)})
    found = external_line(store, entries).handler.latest()
    assert found is not None and found.name == NAME
    assert store.objects == {FINAL: b"bytes"}
    assert entries.entries[2].path == FINAL


def test_a_version_finished_by_another_in_between_is_found() -> None:
    store = DictStore({FINAL: b"bytes"})
    entries = DictEntries({2: PublishedEntry(version=2, path=STAGED)})
    found = external_line(store, entries).handler.find(2)
    assert found is not None and found.name == NAME


def test_a_recorded_manifest_that_is_nowhere_is_corruption() -> None:
    entries = DictEntries({2: PublishedEntry(version=2, path=STAGED)})
    with pytest.raises(CorruptTableError):
        external_line(DictStore(), entries).handler.latest()


@pytest.mark.parametrize("path", ["../other/_versions/1.manifest", "_versions/no name"])
def test_an_entry_that_names_no_manifest_of_the_table_is_corruption(path: str) -> None:
    entries = DictEntries({2: PublishedEntry(version=2, path=path)})
    with pytest.raises(CorruptTableError):
        external_line(DictStore(), entries).handler.latest()


def test_versions_from_before_the_service_was_used_are_found() -> None:
    store = DictStore({FINAL: b"bytes"})
    handler = external_line(store, DictEntries()).handler
    assert handler.latest() == handler.find(2) != None  # noqa: E711  # both, and there is one


def test_a_detached_version_is_not_recorded() -> None:
    store, entries = DictStore(), DictEntries()
    version = DETACHED_BIT | 5
    name = manifest_name(version, ManifestNaming.V2)
    assert (
        external_line(store, entries).handler.create(version, name, b"bytes") == PublishedVersion()
    )
    assert (list(store.objects), entries.entries) == ([f"_versions/{name}"], {})


def _calls_of_a_commit() -> int:
    store = DictStore()
    seed(store)
    calls = FailingCalls()
    _commit(calls.on(store), DictEntries())
    return len(calls.calls)


def _commit(store, entries: DictEntries):  # type: ignore[no-untyped-def]
    asked = request(Append(fragments=(fragment(7),)), unique=1)
    return commit(external_line(store, entries), asked, means(store))


@pytest.mark.parametrize("stop", Stop)
@pytest.mark.parametrize("number", range(_calls_of_a_commit()))
@pytest.mark.parametrize("error", [Crash, lambda: StorageUnavailableError("no reply")])
def test_a_commit_that_breaks_off_anywhere_lands_once_when_repeated(
    number: int, stop: Stop, error: Callable[[], BaseException]
) -> None:
    store, entries = DictStore(), DictEntries()
    seed(store)
    with suppress(Crash, StorageUnavailableError):
        _commit(FailingCalls([number], stop=stop, error=error).on(store), entries)
    assert _commit(store, entries).version == 2
    assert [name.version for name in external_line(store, entries).handler.every()] == [1, 2]
    assert replace(entries.entries[2], size_bytes=None) == PublishedEntry(version=2, path=FINAL)
