"""Cleanup of folders without versions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.maintenance.cleanup import run
from lancelake.maintenance.cleanup.plan import CleanupPolicy
from lancelake.maintenance.cleanup.run import clean_up_folder, is_abandoned
from lancelake.pylance.fragment import write_fragments
from lancelake.storage.location import Location

ROWS = pa.table({"a": range(10)})
ALL = CleanupPolicy(delete_unverified=True)


@pytest.fixture
def stopped(tmp_path: Path) -> Location:
    """Return a folder whose first write was stopped before its commit."""
    write_fragments(ROWS, tmp_path / "t")
    (tmp_path / "t/data/notes.txt").write_text("by hand")
    return Location.parse(tmp_path / "t")


def files(location: Location) -> list[str]:
    return sorted(path.name for path in Path(location.uri).rglob("*") if path.is_file())


def test_files_without_a_version_are_counted_and_stay(stopped: Location) -> None:
    assert is_abandoned(stopped)
    report = clean_up_folder(stopped, CleanupPolicy())
    assert (report.files_removed, len(report.waiting), len(files(stopped))) == (0, 1, 2)


def test_a_dry_run_removes_nothing(stopped: Location) -> None:
    report = clean_up_folder(stopped, ALL, dry_run=True)
    assert (report.files_removed, len(files(stopped))) == (1, 2)


def test_files_without_a_version_are_removed_on_request_and_unknown_ones_stay(
    stopped: Location,
) -> None:
    report = clean_up_folder(stopped, ALL)
    assert (report.files_removed, report.waiting) == (1, ())
    assert files(stopped) == ["notes.txt"]


def test_an_emptied_folder_goes(tmp_path: Path) -> None:
    write_fragments(ROWS, tmp_path / "t")
    clean_up_folder(Location.parse(tmp_path / "t"), ALL)
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_no_abandoned_folder(tmp_path: Path) -> None:
    lance.write_dataset(ROWS, tmp_path / "t")
    assert not is_abandoned(Location.parse(tmp_path / "t"))


def test_a_folder_with_a_branch_is_no_abandoned_folder(tmp_path: Path) -> None:
    ds = lance.write_dataset(ROWS, tmp_path / "t")
    ds.create_branch("dev")
    (tmp_path / "t/_versions").rename(tmp_path / "versions")
    assert not is_abandoned(Location.parse(tmp_path / "t"))


def test_a_folder_without_files_of_a_table_is_not_abandoned(tmp_path: Path) -> None:
    (tmp_path / "t/data").mkdir(parents=True)
    (tmp_path / "t/data/notes.txt").write_text("by hand")
    assert not is_abandoned(Location.parse(tmp_path / "t"))


def test_a_folder_that_becomes_a_table_meanwhile_is_left_alone(
    stopped: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = run._listed

    def then_committed(location: Location) -> object:
        found = listed(location)
        lance.write_dataset(ROWS, location.uri)
        return found

    monkeypatch.setattr(run, "_listed", then_committed)
    with pytest.raises(InvalidRequestError, match="became a table"):
        clean_up_folder(stopped, ALL)
    assert lance.dataset(stopped.uri).count_rows() == 10
