"""Files of deleted branches, and of branches that were never recorded."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import AlreadyExistsError, PlaceNotAllowedError, RefNotFoundError

ROWS = pa.table({"a": [1]})


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    return lance.write_dataset(ROWS, str(tmp_path / "table.lance"))


def branch(table: lance.LanceDataset, name: str) -> lance.LanceDataset:
    return lance.dataset(table.uri).checkout_version((name, None))


def forget(table: lance.LanceDataset, name: str) -> None:
    """Remove the document of a branch and nothing else."""
    (path,) = Path(table.uri, "_refs", "branches").glob(f"{name}*.json")
    path.unlink()


def test_a_branch_below_another_keeps_its_files(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    table.create_branch("x/y")
    table.branches.delete("x")
    assert branch(table, "x/y").to_table() == ROWS


def test_nothing_is_left_of_a_branch(table: lance.LanceDataset) -> None:
    table.create_branch("x/y")
    table.branches.delete("x/y")
    assert not Path(table.uri, "tree", "x", "y").exists()


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A table of someone else, with an old version."""
    uri = tmp_path / "victim" / "x"
    lance.write_dataset(ROWS, str(uri)).insert(ROWS)
    return uri


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("link", ["tree/x/data/sub", "tree/x/_versions", "tree/x", "tree"])
def test_files_behind_a_link_outlive_a_branch(
    table: lance.LanceDataset, victim: Path, link: str
) -> None:
    table.create_branch("x")
    before = files(victim)
    place = Path(table.uri, link)
    if place.exists():
        place.rename(place.with_name("away"))
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(victim.parent if link == "tree" else victim)
    table.branches.delete("x")
    assert files(victim) == before


def test_cleanup_of_a_branch_behind_a_link_is_refused(
    table: lance.LanceDataset, victim: Path
) -> None:
    table.create_branch("x")
    on_branch = branch(table, "x")
    before = files(victim)
    Path(table.uri, "tree").rename(Path(table.uri, "away"))
    Path(table.uri, "tree").symlink_to(victim.parent)
    with pytest.raises(PlaceNotAllowedError, match="link"):
        on_branch.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert files(victim) == before


def test_cleanup_does_not_remove_versions_behind_a_link(
    table: lance.LanceDataset, victim: Path
) -> None:
    before = files(victim)
    Path(table.uri, "_versions").rename(Path(table.uri, "away"))
    Path(table.uri, "_versions").symlink_to(victim / "_versions")
    with pytest.raises(PlaceNotAllowedError, match="link"):
        lance.dataset(table.uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert files(victim) == before


def test_a_branch_that_was_begun_is_finished(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.create_branch("x")
    assert branch(table, "x").to_table() == ROWS


def test_a_branch_begun_from_another_version_is_not_taken_over(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.update_config({"a": "b"})
    with pytest.raises(AlreadyExistsError):
        table.create_branch("x")


def test_a_removal_that_stopped_is_finished(table: lance.LanceDataset) -> None:
    table.create_branch("x")
    forget(table, "x")
    table.branches.delete("x")
    table.update_config({"a": "b"})
    table.create_branch("x")
    assert branch(table, "x").version == 2


def test_a_branch_that_never_was_cannot_be_removed(table: lance.LanceDataset) -> None:
    with pytest.raises(RefNotFoundError):
        table.branches.delete("x")
