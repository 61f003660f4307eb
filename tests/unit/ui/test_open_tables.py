"""Only the given tables can be read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import lancelake
from lancelake.describe.rows import PageRequest, row_page
from lancelake.errors import LanceTableError, NotFoundError
from lancelake.storage.location import Location
from lancelake.ui.calls import OpenTables, table_id
from tests.unit.ui.conftest import AUTHORIZED, Ask


def _given(*roots: Path) -> OpenTables:
    return OpenTables([Location.parse(root, confine_to=roots) for root in roots])


def _names(tables: OpenTables) -> list[str]:
    return [Path(place.uri).name for place in tables.search().tables.values()]


def test_the_tables_below_a_folder_are_listed(folder: Path) -> None:
    assert _names(_given(folder / "given")) == ["hostile.lance", "photos.lance"]


def test_a_table_is_given_by_its_own_location(folder: Path) -> None:
    assert _names(_given(folder / "given" / "photos.lance")) == ["photos.lance"]


def test_a_folder_without_tables_is_a_problem(tmp_path: Path) -> None:
    found = _given(tmp_path).search()
    assert "no tables were found" in found.problems[0]


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link.lance").symlink_to(folder / "secret.lance")
    assert _names(_given(tmp_path)) == []


def test_a_table_that_is_not_given_is_not_found(ask: Ask, folder: Path) -> None:
    secret = table_id(Location.parse(folder / "secret.lance"))
    assert ask(f"tables/{secret}/rows", 404)["problem"] == "there is no such table"


@pytest.mark.parametrize("key", ["%2e%2e", "..%2f..%2fetc", "%2fetc%2fpasswd", "main.js%00", "~"])
def test_a_path_instead_of_an_id_is_not_found(client: TestClient, key: str) -> None:
    assert client.get(f"/api/tables/{key}/rows", headers=AUTHORIZED).status_code == 404


@pytest.mark.parametrize("branch", ["../../secret.lance", "/etc", "..", "experiment/../../x"])
def test_a_branch_does_not_lead_out_of_the_table(ask: Ask, photos_id: str, branch: str) -> None:
    found = ask(f"tables/{photos_id}/rows", 400, branch=branch)
    assert found["code"] == "invalid_name"


def test_files_outside_of_the_given_locations_are_refused(folder: Path, tmp_path: Path) -> None:
    """A clone refers to the files of its source, which is not given."""
    source = lancelake.dataset(folder / "secret.lance")
    source.shallow_clone(tmp_path / "clone.lance", source.version)
    tables = _given(tmp_path)
    (key,) = tables.search().tables
    with pytest.raises(LanceTableError, match="outside"):
        row_page(tables.snapshot(key, None, None), PageRequest())


def test_a_replaced_table_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lancelake.write_dataset(pa.table({"a": [1]}), path)
    tables = _given(tmp_path)
    (key,) = tables.search().tables
    assert tables.snapshot(key, None, None).manifest.schema.names == ("a",)
    shutil.rmtree(path)
    lancelake.write_dataset(pa.table({"other": ["x"]}), path)
    assert tables.snapshot(key, None, None).manifest.schema.names == ("other",)


def test_a_removed_table_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lancelake.write_dataset(pa.table({"a": [1]}), path)
    tables = _given(tmp_path)
    (key,) = tables.search().tables
    shutil.rmtree(path)
    with pytest.raises(NotFoundError):
        tables.snapshot(key, None, None)
