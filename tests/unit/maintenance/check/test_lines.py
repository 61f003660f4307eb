"""Damage to the version list, tags and branches is found, and orphan files are counted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

import lancelake
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.maintenance.check.finding import Finding, Severity
from tests.support.official import Official
from tests.support.sound_tables import codes, findings
from tests.support.table_surgery import edit_manifest, manifest_path


def _only(root: Path, code: str) -> Finding:
    (found,) = [f for f in findings(root, versions="all") if f.code == code]
    return found


def test_one_manifest_under_an_old_name_is_an_error(table: Path) -> None:
    path = manifest_path(table, 2)
    path.rename(path.with_name(manifest_name(2, ManifestNaming.V1)))
    assert _only(table, "naming-mixed").severity is Severity.ERROR


def test_a_table_with_old_names_only_is_in_order(table: Path) -> None:
    shutil.rmtree(table / "tree")
    shutil.rmtree(table / "_refs" / "branches")
    for version in range(1, 6):
        path = manifest_path(table, version)
        path.rename(path.with_name(manifest_name(version, ManifestNaming.V1)))
    assert codes(table, versions="all") == []


def test_versions_gone_from_the_start_are_worth_knowing(table: Path) -> None:
    (table / "_refs" / "tags" / "first.json").unlink()
    for version in (1, 2):
        manifest_path(table, version).unlink()
    assert "versions 1 to 2 are gone" in _only(table, "versions-removed").message


def test_a_gap_above_a_tagged_version_is_explained(table: Path) -> None:
    manifest_path(table, 2).unlink()
    assert _only(table, "versions-removed").severity is Severity.INFO


def test_a_gap_above_a_version_nothing_keeps_is_a_warning(table: Path) -> None:
    manifest_path(table, 3).unlink()
    assert _only(table, "versions-missing").severity is Severity.WARNING


def test_a_version_written_after_its_successor_is_worth_knowing(table: Path) -> None:
    def change(manifest: object) -> None:
        manifest.timestamp.seconds += 1000  # type: ignore[attr-defined]

    edit_manifest(table, change, version=2)
    found = _only(table, "timestamp-order")
    assert (found.version, found.severity) == (2, Severity.INFO)


def test_a_tag_on_a_version_that_is_gone_is_an_error(table: Path) -> None:
    path = table / "_refs" / "tags" / "first.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 77}))
    assert _only(table, "tag-target-missing").path == "_refs/tags/first.json"


def test_a_tag_into_a_branch_that_is_gone_is_an_error(table: Path) -> None:
    path = table / "_refs" / "tags" / "first.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "branch": "nowhere"}))
    assert _only(table, "tag-target-missing").severity is Severity.ERROR


def test_a_tag_that_misstates_the_size_of_its_manifest_is_a_warning(table: Path) -> None:
    path = table / "_refs" / "tags" / "first.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "manifestSize": 1}))
    assert _only(table, "tag-manifest-size").severity is Severity.WARNING


def test_a_tag_document_that_is_no_json_is_an_error(table: Path) -> None:
    (table / "_refs" / "tags" / "first.json").write_text("{")
    assert _only(table, "ref-damaged").severity is Severity.ERROR


def test_a_tag_with_a_forbidden_name_is_an_error(table: Path) -> None:
    shutil.copy(table / "_refs" / "tags" / "first.json", table / "_refs" / "tags" / "a b.json")
    assert _only(table, "ref-damaged").path == "_refs/tags/a b.json"


def test_a_branch_without_versions_is_an_error(table: Path) -> None:
    shutil.rmtree(table / "tree")
    assert _only(table, "branch-root-missing").path == "tree/side"


def test_a_branch_of_a_branch_that_is_gone_is_an_error(table: Path) -> None:
    path = table / "_refs" / "branches" / "side.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "parentBranch": "nowhere"}))
    assert _only(table, "branch-parent-missing").severity is Severity.ERROR


def test_a_branch_of_a_version_that_is_gone_is_a_warning(table: Path) -> None:
    path = table / "_refs" / "branches" / "side.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "parentVersion": 77}))
    assert _only(table, "branch-fork-missing").severity is Severity.WARNING


def test_a_branch_folder_without_a_document_is_a_warning(table: Path) -> None:
    shutil.copytree(table / "tree" / "side", table / "tree" / "deep" / "er")
    assert _only(table, "branch-zombie").path == "tree/deep/er"


def test_damage_on_a_branch_names_the_branch(table: Path) -> None:
    manifest_path(table / "tree" / "side").write_bytes(b"")
    assert _only(table, "manifest-damaged").branch == "side"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("data", "stray.lance"),
        ("data", f"stray/{1:032b}.blob"),
        ("_deletions", "0-1-5.bin"),
        ("_transactions", "1-x.txn"),
        ("_indices", f"{UUID(int=7)}/page.lance"),
    ],
)
def test_a_file_no_version_refers_to_is_counted(folder: str, name: str, table: Path) -> None:
    path = table / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"12345")
    found = _only(table, "strays")
    assert found.path == folder
    assert found.message.startswith("1 ")
    assert "5 bytes" in found.message


def test_a_file_that_no_writer_would_name_so_is_not_counted(table: Path) -> None:
    (table / "data" / "notes.txt").write_bytes(b"12345")
    assert codes(table, versions="all") == []


def test_a_file_that_only_a_clone_within_the_table_needs_is_no_stray(tmp_path: Path) -> None:
    table = tmp_path / "t.lance"
    first = lancelake.write_dataset(pa.table({"i": [1]}), table)
    first.shallow_clone(table / "copies" / "c.lance", 1)
    lancelake.write_dataset(pa.table({"i": [2]}), table, mode="overwrite")
    manifest_path(table, 1).unlink()
    found = [f for f in findings(table, versions="all") if f.code == "strays"]
    assert [f.path for f in found] == ["_transactions"]


def test_orphans_are_not_reported_when_only_the_latest_version_is_checked(table: Path) -> None:
    (table / "data" / "stray.lance").write_bytes(b"12345")
    assert codes(table, versions="latest") == []


def test_orphans_are_not_reported_when_a_version_cannot_be_read(table: Path) -> None:
    (table / "data" / "stray.lance").write_bytes(b"12345")
    manifest_path(table, 2).write_bytes(b"")
    assert set(codes(table, versions="all")) == {"manifest-damaged", "strays-unknown"}


def test_a_file_that_only_a_branch_needs_is_no_stray(official_14: Official, tmp_path: Path) -> None:
    root = tmp_path / "table.lance"
    code = """
lance.write_dataset(pa.table({"x": [1, 2]}), uri)
lance.dataset(uri).create_branch("old")
lance.write_dataset(pa.table({"x": [3]}), uri, mode="overwrite")
"""
    official_14.run(root, code)
    manifest_path(root, 1).unlink()
    found = {f.code for f in findings(root, versions="all") if f.path == "data"}
    assert found == set()


def test_the_same_damage_in_many_versions_is_reported_once(table: Path) -> None:
    next(p for p in (table / "data").iterdir() if p.stat().st_size).unlink()
    found = [f for f in findings(table, versions="all") if f.branch is None]
    assert [f.code for f in found] == ["data-file-missing"]
