"""`lancelake cleanup`: dry run and removal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.support.full_disk import full_disk

Document = Callable[..., Any]
Output = Callable[..., str]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a table of five versions, the second with a tag."""
    uri = tmp_path / "old.lance"
    for number in range(5):
        lance.write_dataset(pa.table({"a": [number]}), uri, mode="overwrite")
    lance.dataset(uri).tags.create("kept", 2)
    return uri


def test_versions_of_the_last_weeks_stay(document: Document, old: Path) -> None:
    body = document("cleanup", old)
    assert (body["versions_removed"], body["files_removed"]) == ([], 0)


def test_a_dry_run_removes_nothing(document: Document, old: Path) -> None:
    before = sorted(old.rglob("*"))
    body = document("cleanup", old, "--older-than", "0s", "--dry-run")
    assert body["versions_removed"] == [1, 3, 4]
    assert sorted(old.rglob("*")) == before


def test_a_dry_run_names_every_file_when_asked(document: Document, old: Path) -> None:
    body = document("cleanup", old, "--retain", 2, "--dry-run", "--files")
    named = {file["path"] for file in (*body["going"], *body["staying"])}
    there = {path.relative_to(old).as_posix() for path in old.rglob("*") if path.is_file()}
    assert named == {path for path in there if not path.startswith(("_refs", "_versions"))} | {
        file["path"] for file in body["going"] if file["kind"] == "manifest"
    }
    assert all(file["why"] for file in body["staying"])


def test_old_versions_go_and_tagged_ones_stay(document: Document, old: Path) -> None:
    body = document("cleanup", old, "--retain", 1)
    assert body["kinds"]["manifest"]["files"] == 3
    assert body["versions_kept"]["2"] == "a tag refers to it"
    assert [v["version"] for v in lance.dataset(old).versions()] == [2, 5]


def test_files_of_no_version_go_without_other_writers(document: Document, old: Path) -> None:
    stray = old / "data" / "stray.lance"
    stray.touch()
    document("cleanup", old)
    assert stray.exists()
    document("cleanup", old, "--delete-unverified")
    assert not stray.exists()


def test_branches_can_be_cleaned_as_well(document: Document, old: Path) -> None:
    lance.dataset(old).create_branch("b")
    lance.write_dataset(pa.table({"a": [9]}), old / "tree" / "b", mode="overwrite")
    body = document("cleanup", old, "--retain", 1, "--branches")
    assert body["branches"]["b"]["versions_removed"] == [5]


def test_a_branch_can_be_cleaned_alone(document: Document, old: Path) -> None:
    lance.dataset(old).create_branch("b")
    lance.write_dataset(pa.table({"a": [9]}), old / "tree" / "b", mode="overwrite")
    body = document("cleanup", old, "--retain", 1, "--branch", "b")
    assert (body["branch"], body["versions_removed"]) == ("b", [5])
    assert len(lance.dataset(old).versions()) == 5


def test_people_see_kinds_and_sizes(output: Output, old: Path) -> None:
    shown = output("cleanup", old, "--retain", 1)
    assert "removed  3 versions, 9 files" in shown
    assert "transaction" in shown
    assert "version 2: a tag refers to it" in shown


def test_a_full_disk_does_not_keep_a_cleanup_from_making_room(
    document: Document, old: Path
) -> None:
    with full_disk():
        body = document("cleanup", old, "--retain", 1)
    assert body["versions_removed"] == [1, 3, 4]
    assert lance.dataset(old).to_table()["a"].to_pylist() == [4]


def test_what_a_killed_writer_left_goes_when_it_is_old(document: Document, old: Path) -> None:
    left = old / "_versions" / "18446744073709551600.manifest#1"
    left.write_bytes(b"half")
    document("cleanup", old)
    assert left.exists()
    os.utime(left, (0, 0))
    assert document("cleanup", old)["files_removed"] == 1
    assert not left.exists()


def test_a_deeply_nested_record_does_not_block_a_cleanup(document: Document, old: Path) -> None:
    (old / "_cleanup").mkdir()
    (old / "_cleanup" / "x.json").write_text("[" * 200_000)
    assert document("cleanup", old, "--retain", 1)["versions_removed"] == [1, 3, 4]


def test_orphans_that_stay_are_counted(document: Document, output: Output, old: Path) -> None:
    stray = old / "data" / "stray.lance"
    stray.write_bytes(bytes(1000))
    os.utime(stray, ns=(0, stray.stat().st_mtime_ns - 7200 * 10**9))
    for flags in ((), ("--dry-run",)):
        found = document("cleanup", old, *flags)["orphans"]
        assert (found["files"], found["bytes"], found["oldest_seconds"] // 3600) == (1, 1000, 2)
        assert "1 orphan, 1000 B, the oldest of 2 hours ago" in output("cleanup", old, *flags)


def test_a_folder_that_never_became_a_table(
    document: Document, output: Output, tmp_path: Path
) -> None:
    place = tmp_path / "t.lance"
    lance.fragment.write_fragments(pa.table({"a": [1]}), place)
    assert "never became a table" in output("cleanup", place)
    assert document("cleanup", place, "--dry-run")["orphans"]["files"] == 1
    assert document("cleanup", place, "--delete-unverified")["files_removed"] == 1
    assert not place.exists()
