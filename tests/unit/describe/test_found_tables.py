"""Tables below a folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.describe.table_folder import find_tables, table_facts
from lancelake.storage.location import Location


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with two tables, one of them deeper."""
    for name in ("a.lance", "deep/er/b.lance"):
        lancelake.write_dataset(pa.table({"x": [1, 2]}), tmp_path / name)
    (tmp_path / "empty").mkdir()
    return tmp_path


def _found(root: Path, most: int = 10) -> tuple[list[str], bool]:
    found = find_tables(Location.parse(root), most)
    return [Path(place.uri).name for place in found.tables], found.is_complete


def test_tables_of_a_folder_are_found(folder: Path) -> None:
    assert _found(folder) == (["a.lance", "b.lance"], True)


def test_a_list_that_is_cut_says_so(folder: Path) -> None:
    assert _found(folder, 1) == (["a.lance"], False)


def test_a_table_is_found_at_its_own_location(folder: Path) -> None:
    assert _found(folder / "a.lance") == (["a.lance"], True)


def test_branches_are_not_listed_as_tables(folder: Path) -> None:
    lancelake.dataset(folder / "a.lance").create_branch("side")
    assert _found(folder)[0] == ["a.lance", "b.lance"]


def test_a_table_has_its_size(folder: Path) -> None:
    found = table_facts(Location.parse(folder / "a.lance"))
    assert (found["rows"], found["version"], found["columns"]) == (2, 1, ["x"])


def test_a_damaged_table_has_a_reason(folder: Path) -> None:
    (manifest,) = (folder / "a.lance" / "_versions").iterdir()
    manifest.write_bytes(b"damaged")
    assert table_facts(Location.parse(folder / "a.lance"))["error"]


def test_tables_of_an_object_store_are_found() -> None:
    root = "shared-memory://explorer/tables"
    lancelake.write_dataset(pa.table({"x": [1]}), f"{root}/deep/c.lance")
    found = find_tables(Location.parse(root), 10)
    assert [place.uri for place in found.tables] == [f"{root}/deep/c.lance"]
