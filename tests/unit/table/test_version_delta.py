"""Added and removed rows and fragments are counted for every operation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lancelake.commit.snapshot import AtVersion, open_snapshot
from lancelake.proto.table_pb2 import Manifest
from lancelake.storage.location import Location
from lancelake.table.history import VersionDelta, change, version_rows
from tests.support.official import Official
from tests.support.table_surgery import edit_manifest


def _change(root: Path, version: int) -> tuple[int | None, int | None, int, int]:
    location = Location.parse(root)
    after = open_snapshot(location, AtVersion(version))
    before = open_snapshot(location, AtVersion(version - 1)) if version > 1 else None
    transaction = after.transaction
    found: VersionDelta = change(before, after, transaction.operation if transaction else None)
    return (
        found.rows_added,
        found.rows_removed,
        found.fragments_added,
        found.fragments_removed,
    )


@pytest.mark.parametrize(
    ("version", "expected"),
    [(1, (20, 0, 2, 0)), (2, (10, 0, 1, 0)), (3, (0, 3, 0, 0)), (4, (0, 0, 0, 0))],
    ids=["create", "append", "delete", "index"],
)
def test_counts(version: int, expected: tuple[int, ...], sound: Path) -> None:
    assert _change(sound, version) == expected


def test_a_new_column_moves_no_rows(official_14: Official, tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    official_14.write(root, pa.table({"x": [1, 2, 3]}))
    official_14.add_columns(root, {"y": "x + 1"})
    assert _change(root, 2) == (0, 0, 0, 0)


def test_a_compaction_moves_fragments_but_no_rows(official_14: Official, tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    official_14.write(root, pa.table({"x": list(range(30))}), max_rows_per_file=10)
    version = official_14.compact(root)
    assert _change(root, version) == (0, 0, 1, 3)


def test_an_update_removes_and_adds_the_rows_it_touches(
    official_14: Official, tmp_path: Path
) -> None:
    root = tmp_path / "t.lance"
    official_14.write(root, pa.table({"x": list(range(10))}))
    official_14.update(root, {"x": "x + 100"}, "x < 4")
    assert _change(root, 2) == (4, 4, 1, 0)


def test_a_restore_brings_deleted_rows_back(official_14: Official, tmp_path: Path) -> None:
    root = tmp_path / "t.lance"
    official_14.write(root, pa.table({"x": list(range(10))}))
    official_14.delete(root, "x < 4")
    official_14.restore(root, 1)
    assert _change(root, 3) == (4, 0, 0, 0)


def test_rows_are_unknown_where_a_manifest_does_not_say(table: Path) -> None:
    def forget(manifest: Manifest) -> None:
        manifest.fragments[2].physical_rows = 0

    edit_manifest(table, forget, version=2)
    assert _change(table, 2) == (None, 0, 1, 0)
    assert version_rows(open_snapshot(Location.parse(table), AtVersion(2))) is None
