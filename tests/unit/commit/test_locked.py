from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from lancelake.commit.handler import ConditionalPut, LockedHandler, PublishedVersion, Taken
from lancelake.errors import ConflictError, StorageError
from lancelake.format.layout import ManifestNaming, manifest_name
from tests.support.scheduled_store import DictStore

NAME = manifest_name(1, ManifestNaming.V2)


@pytest.fixture
def store() -> DictStore:
    return DictStore()


def _is_there(store: DictStore) -> bool:
    return store.exists(f"_versions/{NAME}")


def test_the_lock_is_held_while_a_version_is_published(store: DictStore) -> None:
    seen: list[tuple[int, bool]] = []

    @contextmanager
    def lock(version: int) -> Iterator[None]:
        seen.append((version, _is_there(store)))
        yield
        seen.append((version, _is_there(store)))

    handler = LockedHandler(inner=ConditionalPut(store=store), lock=lock)
    assert handler.create(1, NAME, b"x") == PublishedVersion()
    assert seen == [(1, False), (1, True)]


def test_a_lock_that_another_has_means_a_lost_race(store: DictStore) -> None:
    def lock(version: int) -> AbstractContextManager[None]:
        raise ConflictError(f"another has {version}")

    handler = LockedHandler(inner=ConditionalPut(store=store), lock=lock)
    assert (handler.create(1, NAME, b"x"), _is_there(store)) == (Taken(), False)


def test_without_the_lock_nothing_is_published(store: DictStore) -> None:
    def lock(version: int) -> AbstractContextManager[None]:
        raise RuntimeError(f"no lock for {version}")

    handler = LockedHandler(inner=ConditionalPut(store=store), lock=lock)
    with pytest.raises(
        StorageError, match="lock for version 1 could not be acquired: no lock for 1"
    ):
        handler.create(1, NAME, b"x")
    assert not _is_there(store)


def test_a_lock_that_is_not_released_does_not_undo_what_is_published(store: DictStore) -> None:
    @contextmanager
    def lock(version: int) -> Iterator[None]:
        yield
        raise RuntimeError(f"{version} is stuck")

    handler = LockedHandler(inner=ConditionalPut(store=store), lock=lock)
    with pytest.warns(RuntimeWarning, match="not released: 1 is stuck"):
        assert handler.create(1, NAME, b"x") == PublishedVersion()
    assert _is_there(store)


def test_versions_are_found_without_the_lock(store: DictStore) -> None:
    inner = ConditionalPut(store=store)
    handler = LockedHandler(inner=inner, lock=lambda _: pytest.fail("locked"))
    inner.create(1, NAME, b"x")
    assert handler.find(1) == handler.latest() == handler.every()[0] == inner.latest()
