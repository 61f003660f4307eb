"""Snapshots of a manifest; errors name the location."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.snapshot import (
    AtVersion,
    Latest,
    OnBranch,
    Snapshot,
    find_version,
    open_snapshot,
)
from lancelake.errors import CorruptTableError, VersionNotFoundError
from lancelake.format.operations import Append, Delete, Overwrite, UpdateConfig
from lancelake.storage.location import Location
from tests.support.read_tables import versioned
from tests.support.table_surgery import drop_inline_transaction, manifest_path, transaction_path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a table of four versions."""
    versioned(tmp_path / "t.lance")
    return tmp_path / "t.lance"


def snapshot(root: Path, version: int) -> Snapshot:
    return open_snapshot(Location.parse(root), AtVersion(version))


@pytest.mark.parametrize(
    ("version", "operation"), [(1, Overwrite), (2, Append), (3, Delete), (4, UpdateConfig)]
)
@pytest.mark.parametrize("inline", [True, False])
def test_transaction_describes_the_change_that_made_the_version(
    root: Path, version: int, operation: type, inline: bool
) -> None:
    if not inline:
        drop_inline_transaction(root, version)
    transaction = snapshot(root, version).transaction
    assert transaction is not None
    assert isinstance(transaction.operation, operation)
    assert transaction.read_version == version - 1


def test_transaction_that_was_cleaned_up_is_none(root: Path) -> None:
    drop_inline_transaction(root, 2)
    transaction_path(root, 2).unlink()
    assert snapshot(root, 2).transaction is None


def test_the_error_of_a_damaged_transaction_names_its_file(root: Path) -> None:
    drop_inline_transaction(root, 2)
    transaction_path(root, 2).write_bytes(b"\xff\xff\xff")
    with pytest.raises(CorruptTableError, match=f"{root}, version 2"):
        _ = snapshot(root, 2).transaction


@pytest.mark.parametrize("size", [0, 4, 15, 16, 100])
def test_the_error_of_a_truncated_manifest_names_its_file(root: Path, size: int) -> None:
    path = manifest_path(root, 3)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorruptTableError, match=f"{root}, version 3"):
        snapshot(root, 3)


def test_manifest_that_vanished_is_a_missing_version(root: Path) -> None:
    place = Location.parse(root)
    name = find_version(place, 2)
    manifest_path(root, 2).unlink()
    with pytest.raises(VersionNotFoundError, match="version 2 was not found"):
        Snapshot.load(place, name)


def test_version_without_indices_has_none(root: Path) -> None:
    assert snapshot(root, 1).indices == ()


def test_size_is_that_of_the_manifest_file(root: Path) -> None:
    assert snapshot(root, 2).manifest_size == manifest_path(root, 2).stat().st_size


def test_files_of_a_branch_are_where_they_were_written(root: Path) -> None:
    branch = open_snapshot(Location.parse(root), OnBranch("feat/x"))
    files = [branch.files.data_file(f.files[0]).uri for f in branch.manifest.fragments]
    assert [uri.rpartition("/data/")[0] for uri in files] == [
        str(root),
        str(root),
        f"{root}/tree/feat/x",
    ]


def test_main_line_is_where_refs_are_recorded(root: Path) -> None:
    place = Location.parse(root)
    assert open_snapshot(place, OnBranch("feat/x")).main_location == place
    assert open_snapshot(place, Latest()).main_location == place
