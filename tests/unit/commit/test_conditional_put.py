from __future__ import annotations

import pytest

from lancelake.commit.handler import ConditionalPut, PublishedVersion, Taken, Unknown
from lancelake.errors import StorageDeniedError, StorageUnavailableError, UnsupportedError
from lancelake.format.layout import ManifestNaming, manifest_name
from tests.support.failing_store import FailingCalls
from tests.support.scheduled_store import DictStore

NAME = manifest_name(1, ManifestNaming.V2)


def test_a_free_version_is_written() -> None:
    store = DictStore()
    assert ConditionalPut(store=store).create(1, NAME, b"mine") == PublishedVersion()
    assert store.objects == {f"_versions/{NAME}": b"mine"}


def test_a_taken_version_is_left_alone() -> None:
    store = DictStore({f"_versions/{NAME}": b"theirs"})
    assert ConditionalPut(store=store).create(1, NAME, b"mine") == Taken()
    assert store.objects == {f"_versions/{NAME}": b"theirs"}


@pytest.mark.parametrize("error", [StorageUnavailableError("x"), StorageDeniedError("x")])
def test_a_failure_of_the_store_leaves_it_unknown(error: Exception) -> None:
    store = FailingCalls([0], error=lambda: error).on(DictStore())
    assert ConditionalPut(store=store).create(1, NAME, b"mine") == Unknown(error)


def test_a_store_that_cannot_create_is_refused() -> None:
    store = FailingCalls([0], error=lambda: UnsupportedError("x")).on(DictStore())
    with pytest.raises(UnsupportedError):
        ConditionalPut(store=store).create(1, NAME, b"mine")
