from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.version_line import open_line
from lancelake.commit.versions import find_version, has_table, latest_version, list_versions
from lancelake.errors import TableNotFoundError, VersionNotFoundError
from lancelake.format.ids import DETACHED_BIT
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
def test_a_missing_version_is_told(location: Location, version: int) -> None:
    with pytest.raises(VersionNotFoundError):
        find_version(location, version)


def test_a_missing_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="was not found"):
        latest_version(Location.parse(tmp_path / "none.lance"))


def test_a_place_has_a_table_when_it_has_a_version(location: Location, tmp_path: Path) -> None:
    assert has_table(location)
    assert not has_table(Location.parse(tmp_path / "none.lance"))
