"""Rows of the metadata tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Latest, OnBranch, Snapshot, open_snapshot
from lancelake.describe.log import log_entries, version_names
from lancelake.describe.metadata_tables import facts, facts_schema
from lancelake.storage.location import Location

NAMES = ("history", "versions", "fragments", "files", "refs", "indices")


@pytest.fixture
def table(tmp_path: Path) -> Snapshot:
    """Return the second of two versions, with tags, a deletion and a branch."""
    place = tmp_path / "t.lance"
    made = lancelake.write_dataset(pa.table({"i": [1, 2, 3]}), place)
    made.tags.create("first", 1)
    made.delete("i = 2")
    made.tags.create("second", 2)
    made.create_branch("side", 2)
    return open_snapshot(Location.parse(place), Latest())


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_columns_that_are_promised(name: str, table: Snapshot) -> None:
    assert facts(name, table).schema == facts_schema(name)


def test_a_limit_keeps_the_first_rows(table: Snapshot) -> None:
    assert facts("history", table, limit=1) == facts("history", table).slice(0, 1)


def test_versions_have_the_tags_of_their_own_line(table: Snapshot) -> None:
    side = open_snapshot(table.location, OnBranch("side"))
    assert facts("versions", table)["tags"].to_pylist() == [["first"], ["second"]]
    assert not any(facts("versions", side)["tags"].to_pylist())


def test_a_fragment_names_its_deletion_file(table: Snapshot) -> None:
    (row,) = facts("fragments", table).to_pylist()
    assert (row["rows"], row["deleted_rows"]) == (2, 1)
    assert (Path(table.location.uri) / row["deletion_file"]).is_file()


def test_the_log_agrees_with_the_history(table: Snapshot) -> None:
    entries = log_entries(table, version_names(table))
    history = facts("history", table).to_pylist()
    assert [e.version for e in entries] == [row["version"] for row in history] == [2, 1]
