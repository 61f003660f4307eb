from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.snapshot import (
    find_version,
    has_table,
    latest_version,
    list_versions,
    open_line,
)
from lancelake.errors import TableNotFoundError, VersionNotFoundError
from lancelake.format import layout
from lancelake.format.layout import DETACHED_BIT, ManifestNaming, manifest_name
from lancelake.storage.location import Location
from tests.support.table_builder import seed


@pytest.fixture
def location(tmp_path: Path) -> Location:
    made = Location.parse(tmp_path / "t.lance")
    seed(open_line(made).store)
    return made


def test_the_versions_of_a_table_are_found(location: Location) -> None:
    newest = latest_version(location)
    assert newest == find_version(location, 1)
    assert list_versions(location) == [newest]


@pytest.mark.parametrize("version", [2, DETACHED_BIT | 2])
def test_a_missing_version_is_an_error(location: Location, version: int) -> None:
    with pytest.raises(VersionNotFoundError):
        find_version(location, version)


@pytest.mark.parametrize("version", [0, -1])
def test_numbers_below_the_first_version_are_not_said_to_be_cleaned_up(
    location: Location, version: int
) -> None:
    problem = f"version {version} was not found; the latest is 1.*Versions are numbered from 1"
    with pytest.raises(VersionNotFoundError, match=problem):
        find_version(location, version)


@pytest.mark.parametrize(
    ("version", "why"),
    [(2, "The oldest version is 3: .* cleanup, or belong to"), (4, "versions left are 3 and 5")],
)
def test_versions_that_are_left_are_named(location: Location, version: int, why: str) -> None:
    store = open_line(location).store
    made = store.get(layout.manifest(latest_version(location).name))
    for number in (3, 5):
        store.put(layout.manifest(manifest_name(number, ManifestNaming.V2)), made)
    store.delete(layout.manifest(manifest_name(1, ManifestNaming.V2)))
    with pytest.raises(VersionNotFoundError, match=f"version {version} was not found.*{why}"):
        find_version(location, version)


def test_a_missing_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="was not found"):
        latest_version(Location.parse(tmp_path / "none.lance"))


def test_a_place_has_a_table_when_it_has_a_version(location: Location, tmp_path: Path) -> None:
    assert has_table(location)
    assert not has_table(Location.parse(tmp_path / "none.lance"))
