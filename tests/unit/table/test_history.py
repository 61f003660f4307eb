"""All versions and their contents are listed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.errors import CorruptTableError
from lancelake.storage.location import Location
from lancelake.table.history import VersionFacts, facts_of, history, history_in_numbers, summarize
from tests.support.read_tables import varied, versioned
from tests.support.table_surgery import manifest_path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a table of four versions."""
    versioned(tmp_path / "t.lance")
    return tmp_path / "t.lance"


@pytest.mark.parametrize(("newest_first", "order"), [(False, [1, 2, 3, 4]), (True, [4, 3, 2, 1])])
def test_versions_come_in_order(root: Path, newest_first: bool, order: list[int]) -> None:
    found = history(Location.parse(root), newest_first=newest_first)
    assert [snapshot.version for snapshot in found] == order


def test_branch_has_its_own_versions(root: Path) -> None:
    assert [s.version for s in history(Location.parse(root / "tree/feat/x"))] == [2, 3]


def test_version_that_vanishes_meanwhile_is_left_out(root: Path) -> None:
    found = history(Location.parse(root))
    assert next(found).version == 1
    manifest_path(root, 2).unlink()
    assert [snapshot.version for snapshot in found] == [3, 4]


def test_damaged_version_is_named(root: Path) -> None:
    manifest_path(root, 2).write_bytes(b"damaged")
    with pytest.raises(CorruptTableError, match=f"{root}, version 2"):
        list(history(Location.parse(root)))


def test_table_that_is_not_there_has_no_versions(tmp_path: Path) -> None:
    assert list(history(Location.parse(tmp_path))) == []


def test_summary_counts_what_a_version_holds(tmp_path: Path) -> None:
    table = varied(tmp_path / "t.lance")
    snapshot = open_snapshot(Location.parse(table.uri), Latest())
    summary = summarize(snapshot)
    sizes = [(Path(table.uri) / "data" / f.path).stat().st_size for f in files(snapshot)]
    assert summary.total_fragments == 5
    assert (summary.total_data_files, summary.total_files_size) == (8, sum(sizes))
    assert (summary.total_deletion_files, summary.total_deletion_file_rows) == (4, 10)
    assert (summary.total_data_file_rows, summary.total_rows) == (37, 27)


def files(snapshot):
    return [file for fragment in snapshot.manifest.fragments for file in fragment.files]


def in_numbers(root: Path) -> list[VersionFacts]:
    return history_in_numbers(Location.parse(root))


def test_numbers_are_those_of_whole_versions(root: Path) -> None:
    expected = [facts_of(snapshot) for snapshot in history(Location.parse(root))]
    assert in_numbers(root) == expected
    assert in_numbers(root) == expected


def test_numbers_of_fragments_with_deletions_are_those_of_the_version(tmp_path: Path) -> None:
    table = varied(tmp_path / "t.lance")
    expected = [facts_of(snapshot) for snapshot in history(Location.parse(table.uri))]
    assert in_numbers(Path(table.uri)) == expected


def test_numbers_leave_out_versions_that_are_gone(root: Path) -> None:
    in_numbers(root)
    manifest_path(root, 2).unlink()
    assert [facts.version for facts in in_numbers(root)] == [1, 3, 4]


def test_numbers_of_another_table_at_the_same_place_are_its_own(root: Path) -> None:
    before = in_numbers(root)
    shutil.rmtree(root)
    varied(root)
    assert in_numbers(root) != before
    assert in_numbers(root) == [facts_of(s) for s in history(Location.parse(root))]


def test_damaged_version_is_named_when_numbers_are_asked_for(root: Path) -> None:
    manifest_path(root, 2).write_bytes(b"damaged")
    with pytest.raises(CorruptTableError, match=f"{root}, version 2"):
        in_numbers(root)
