from __future__ import annotations

import pytest

from lancelake.commit.candidate import CommitResult
from lancelake.commit.loop import clone_table, create_table
from lancelake.errors import AlreadyExistsError
from lancelake.format import layout
from lancelake.format.ids import Version
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.format.operations import Clone, Overwrite
from lancelake.storage.store import ObjectStore
from tests.support.failing_store import FailingCalls, Stop
from tests.support.scheduled_store import DictStore
from tests.support.table_builder import SCHEMA, fragment, line_on, log, means, request, seed

CREATES = frozenset({"create"})


def _create(store: ObjectStore, *, unique: int = 1, naming: ManifestNaming = ManifestNaming.V2):  # type: ignore[no-untyped-def]
    asked = request(
        Overwrite(fragments=(fragment(1),), schema=SCHEMA), unique=unique, read_version=0
    )
    return create_table(line_on(store), asked, means(store), naming=naming)


def test_a_new_table_begins_with_version_1() -> None:
    store = DictStore()
    result: CommitResult = _create(store)
    assert (result.version, result.transaction.read_version) == (1, 0)
    assert [c.snapshot.file for c in log(line_on(store))] == [result.snapshot.file]


def test_a_new_table_may_have_old_names() -> None:
    store = DictStore()
    _create(store, naming=ManifestNaming.V1)
    assert store.exists("_versions/1.manifest")


def test_a_table_that_exists_is_not_replaced() -> None:
    store = DictStore()
    _create(store)
    before = dict(store.objects)
    with pytest.raises(AlreadyExistsError, match="Dataset already exists"):
        _create(store, unique=2)
    assert store.objects == before


def test_a_table_whose_first_version_is_gone_exists() -> None:
    store = DictStore()
    _create(store)
    path = layout.manifest(manifest_name(1, ManifestNaming.V2))
    store.put(layout.manifest(manifest_name(2, ManifestNaming.V2)), store.objects.pop(path))
    with pytest.raises(AlreadyExistsError):
        _create(store, unique=2)


def test_the_same_first_commit_again_is_recognised() -> None:
    store = DictStore()
    first = _create(store)
    assert _create(store).snapshot.file == first.snapshot.file


@pytest.mark.parametrize("stop", Stop)
def test_a_first_commit_whose_reply_was_lost_lands_once(stop: Stop) -> None:
    store = DictStore()
    assert _create(FailingCalls([0], stop=stop, only=CREATES).on(store)).version == 1
    assert len(log(line_on(store))) == 1


def test_a_clone_begins_with_the_version_it_copies() -> None:
    source = DictStore()
    seed(source)
    copied = log(line_on(source))[0].snapshot.state
    store = DictStore()
    operation = Clone(
        is_shallow=True, ref_name=None, ref_version=Version(1), ref_path="memory://source"
    )
    result = clone_table(
        line_on(store),
        request(operation, unique=1),
        means(store),
        source=copied,
        source_uri="memory://source",
    )
    assert result.version == copied.manifest.version
