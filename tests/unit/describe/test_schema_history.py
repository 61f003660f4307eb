"""Changes of columns by version."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Latest, Snapshot, open_snapshot
from lancelake.describe.log import schema_history
from lancelake.storage.location import Location


@pytest.fixture
def newest(tmp_path: Path) -> Snapshot:
    """Return version 4 of a table: version 2 adds a column, version 4 renames it."""
    path = tmp_path / "t.lance"
    ds = lancelake.write_dataset(pa.table({"a": [1]}), path)
    ds.add_columns({"b": "a + 1"})
    ds.update_config({"x": "y"})
    ds.alter_columns({"path": "b", "name": "c"})
    return open_snapshot(Location.parse(path), Latest())


def test_versions_that_changed_columns_are_listed(newest: Snapshot) -> None:
    found = schema_history(newest, None, 100)
    assert [change["version"] for change in found["changes"]] == [4, 2, 1]
    assert found["next"] is None


def test_a_rename_is_a_change_of_one_column(newest: Snapshot) -> None:
    (pair,) = schema_history(newest, None, 100)["changes"][0]["columns"]
    assert (pair["before"]["path"], pair["after"]["path"]) == ("b", "c")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_pages_together_are_all_changes(newest: Snapshot, most: int) -> None:
    before, versions = None, []
    while True:
        found = schema_history(newest, before, most)
        versions += [change["version"] for change in found["changes"]]
        before = found["next"]
        if before is None:
            break
    assert versions == [4, 2, 1]
