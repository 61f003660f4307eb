"""The summary of a table and its warnings."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.commit.snapshot import AtVersion, Latest, OnBranch, open_snapshot
from lancelake.describe import summary
from lancelake.describe.summary import TableSummary, describe
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.proto.table_pb2 import IndexSection, Manifest
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.table_surgery import edit_indices, edit_manifest, manifest_path


def _described(root: Path, version: int | None = None) -> TableSummary:
    reference = Latest() if version is None else AtVersion(version)
    return describe(open_snapshot(Location.parse(root), reference))


def _codes(root: Path) -> list[str]:
    return [warning.code for warning in _described(root).warnings]


def test_rows_exclude_deleted_ones(sound: Path) -> None:
    found = _described(sound)
    assert (found.rows, found.deleted_rows) == (27, 3)


def test_size_is_that_of_the_data_files(sound: Path) -> None:
    sizes = [path.stat().st_size for path in (sound / "data").iterdir()]
    assert (_described(sound).data_bytes, _described(sound).unsized_files) == (sum(sizes), 0)


def test_size_is_looked_up_where_the_manifest_does_not_say(table: Path) -> None:
    expected = _described(table).data_bytes

    def change(manifest: Manifest) -> None:
        manifest.fragments[0].files[0].file_size_bytes = 0

    edit_manifest(table, change)
    assert _described(table).data_bytes == expected


def test_files_that_are_gone_are_counted_apart(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.fragments[0].files[0].file_size_bytes = 0
        manifest.fragments[0].files[0].path = "nothing.lance"

    edit_manifest(table, change)
    assert _described(table).unsized_files == 1


def test_an_old_version_knows_the_latest(sound: Path) -> None:
    found = _described(sound, 2)
    assert (found.version, found.latest_version, found.versions) == (2, 5, 5)


def test_tags_and_branches_are_those_of_the_whole_table(sound: Path) -> None:
    on_branch = describe(open_snapshot(Location.parse(sound), OnBranch("side")))
    assert ([n for n, _ in on_branch.tags], [n for n, _ in on_branch.branches]) == (
        ["first"],
        ["side"],
    )


def test_an_index_has_its_kind_columns_and_rows(sound: Path) -> None:
    (index,) = _described(sound).indices
    assert (index.name, index.kind, index.columns) == ("id_idx", "BTree", ("id",))
    assert (index.indexed_rows, index.unindexed_rows) == (27, 0)


def test_rows_are_unknown_where_only_files_know(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.fragments[0].physical_rows = 0

    edit_manifest(table, change)
    assert _described(table).rows is None


def test_a_small_table_in_order_has_no_warnings(sound: Path) -> None:
    assert _codes(sound) == []


def test_many_deletions_are_a_warning(table: Path, official_14: Official) -> None:
    official_14.delete(table, "id < 8")
    assert _codes(table) == ["many-deletions"]


def test_fragments_outside_an_index_are_a_warning(sound: Path) -> None:
    found = describe(open_snapshot(Location.parse(sound), OnBranch("side")))
    (warning,) = found.warnings
    assert warning.code == "unindexed-fragments"
    assert "1 fragment with 5 rows" in warning.message


def test_many_small_fragments_are_a_warning(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_MANY_SMALL_FRAGMENTS", 3)
    assert _codes(sound) == ["small-fragments"]


def test_many_versions_are_a_warning(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_MANY_VERSIONS", 4)
    assert _codes(sound) == ["many-versions"]


def test_advice_names_commands_that_exist(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_MANY_VERSIONS", 4)
    monkeypatch.setattr(summary, "_MANY_SMALL_FRAGMENTS", 3)
    monkeypatch.setattr(summary, "_MANY_DELETED", 0.05)
    named = re.findall(
        "`lancelake ([a-z]+)`", " ".join(w.advice for w in _described(sound).warnings)
    )
    assert set(named) == {"compact", "optimize", "cleanup"}


def test_deferred_index_work_is_a_warning(table: Path) -> None:
    def change(section: IndexSection) -> None:
        entry = section.indices.add(name="__lance_frag_reuse", dataset_version=5)
        entry.uuid.uuid = bytes(16)

    edit_indices(table, change)
    assert _codes(table) == ["deferred-index-work"]


def test_unknown_writer_flags_are_a_warning(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        manifest.writer_feature_flags |= 1 << 30

    edit_manifest(table, change)
    assert _codes(table) == ["read-only"]


def test_mixed_naming_is_a_warning(table: Path) -> None:
    path = manifest_path(table, 2)
    path.rename(path.with_name(manifest_name(2, ManifestNaming.V1)))
    assert _codes(table) == ["naming-mixed"]


def test_a_damaged_tag_is_a_warning(table: Path) -> None:
    (table / "_refs" / "tags" / "first.json").write_text("{")
    assert _codes(table) == ["ref-damaged"]


def test_a_damaged_bitmap_leaves_coverage_unknown(table: Path) -> None:
    edit_indices(table, lambda s: setattr(s.indices[0], "fragment_bitmap", b"\x00"))
    (index,) = _described(table).indices
    assert (index.indexed_rows, index.unindexed_fragments) == (None, None)


def test_an_empty_table_has_no_rows(official_14: Official, tmp_path: Path) -> None:
    official_14.write(tmp_path / "t.lance", pa.table({"x": pa.array([], pa.int64())}))
    found = _described(tmp_path / "t.lance")
    assert (found.rows, found.deleted_rows, found.data_bytes) == (0, 0, 0)
