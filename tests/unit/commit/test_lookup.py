from __future__ import annotations

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.commit.handler import every_manifest, hinted_version, latest_manifest, manifest_of
from lancelake.format import layout
from lancelake.format.layout import DETACHED_BIT, ManifestNaming, manifest_name
from tests.support.scheduled_store import DictStore


class Unordered(DictStore):
    """Lists in no order, as a disk does."""

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        return None


KINDS = st.sampled_from([DictStore, Unordered])
NAMINGS = st.sampled_from(ManifestNaming)


def _put(store: DictStore, *versions: int, naming: ManifestNaming = ManifestNaming.V2) -> None:
    for version in versions:
        store.put(layout.manifest(manifest_name(version, naming)), b"")


@given(
    kind=KINDS,
    naming=NAMINGS,
    versions=st.sets(st.integers(1, 10_000), min_size=1),
    detached=st.sets(st.integers(0, 99)),
)
def test_the_newest_version_is_the_highest_of_the_main_line(
    kind: type[DictStore], naming: ManifestNaming, versions: set[int], detached: set[int]
) -> None:
    store = kind()
    _put(store, *versions, naming=naming)
    _put(store, *(DETACHED_BIT | d for d in detached))
    found = latest_manifest(store)
    assert found is not None
    assert (found.version, found.naming) == (max(versions), naming)


@given(kind=KINDS, last=st.integers(1, 40), hint=st.integers(1, 40))
def test_a_hint_never_changes_what_is_found(kind: type[DictStore], last: int, hint: int) -> None:
    store = kind()
    _put(store, *range(1, last + 1))
    store.put(layout.VERSION_HINT, b'{"version":%d}' % min(hint, last))
    found = latest_manifest(store)
    assert found is not None and found.version == last


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"version":"1"}', b'{"version":0}', b"\xff", b'{"version":-1}']
)
def test_a_broken_hint_says_nothing(data: bytes) -> None:
    assert hinted_version(data) is None


@pytest.mark.parametrize("naming", ManifestNaming)
def test_a_version_is_found_under_either_name(naming: ManifestNaming) -> None:
    store = DictStore()
    _put(store, 3, naming=naming)
    found = manifest_of(store, 3)
    assert found is not None and found.name == manifest_name(3, naming)


@pytest.mark.parametrize("version", [0, -1, 1 << 64, 4])
def test_a_version_that_cannot_be_there_is_not_found(version: int) -> None:
    store = DictStore()
    _put(store, 3)
    assert manifest_of(store, version) is None


def test_all_versions_come_oldest_first_and_once() -> None:
    store = DictStore()
    _put(store, 10, 9, 11)
    _put(store, 9, 10, naming=ManifestNaming.V1)
    _put(store, DETACHED_BIT | 1)
    names = every_manifest(store)
    assert [(n.version, n.naming) for n in names] == [
        (9, ManifestNaming.V2),
        (10, ManifestNaming.V2),
        (11, ManifestNaming.V2),
    ]


def test_a_store_without_manifests_has_no_newest() -> None:
    assert latest_manifest(DictStore()) is None
