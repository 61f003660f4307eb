"""Row ids and row versions match those of the official release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lancelake.pylance

ours: Any = lancelake.pylance
official: Any = lance
Face = Any
LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": list(keys), "v": [k * 10 for k in keys]})


def begin(face: Face, path: Path) -> str:
    """Write two fragments, change and delete some of their rows."""
    face.write_dataset(rows(*range(6)), path, max_rows_per_file=3, enable_stable_row_ids=True)
    face.dataset(path).update({"v": "v + 1"}, where="k in (1, 4)")
    face.dataset(path).delete("k = 0")
    return str(path)


def change(face: Face, uri: str) -> None:
    """Do a little of everything."""
    face.write_dataset(rows(20, 21), uri, mode="append")
    face.dataset(uri).update({"v": "v + 1"}, where="k in (2, 4, 20)")
    merge = face.dataset(uri).merge_insert("k")
    merge.when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 30))
    face.dataset(uri).delete("k = 21")


def on_main(face: Face, path: Path) -> str:
    return begin(face, path)


def on_branch(face: Face, path: Path) -> str:
    begin(face, path)
    return str(face.dataset(path).create_branch("side", 2).uri)


def on_branch_of_branch(face: Face, path: Path) -> str:
    branch = on_branch(face, path)
    face.dataset(branch).delete("k = 5")
    return str(face.dataset(branch).create_branch("inner").uri)


def on_clone(face: Face, path: Path) -> str:
    begin(face, path)
    clone = path.with_name("clone.lance")
    face.dataset(path).shallow_clone(str(clone), 2)
    return str(clone)


def after_restore(face: Face, path: Path) -> str:
    begin(face, path)
    face.write_dataset(rows(9), path, mode="append")
    face.dataset(path, version=2).restore()
    return str(path)


def after_overwrite(face: Face, path: Path) -> str:
    begin(face, path)
    face.write_dataset(rows(7, 8), path, mode="overwrite")
    return str(path)


def after_compaction(face: Face, path: Path) -> str:
    begin(face, path)
    face.dataset(path).optimize.compact_files()
    return str(path)


def after_columns(face: Face, path: Path) -> str:
    begin(face, path)
    face.dataset(path).add_columns({"w": "k + v"})
    face.dataset(path).add_columns(pa.field("z", pa.int8()))
    face.dataset(path).alter_columns({"path": "v", "data_type": pa.int32()})
    face.dataset(path).drop_columns(["w", "z"])
    face.dataset(path).alter_columns({"path": "v", "data_type": pa.int64()})
    return str(path)


PLACES = [
    on_main,
    on_branch,
    on_branch_of_branch,
    on_clone,
    after_restore,
    after_overwrite,
    after_compaction,
    after_columns,
]


@pytest.mark.parametrize("prepare", PLACES, ids=lambda f: f.__name__)
def test_the_same_changes_give_the_same_lineage(
    prepare: Callable[[Face, Path], str], tmp_path: Path
) -> None:
    found = []
    for name, face in (("ours", ours), ("official", official)):
        folder = tmp_path / name
        folder.mkdir()
        uri = prepare(face, folder / "table.lance")
        change(face, uri)
        reader = official.dataset(uri) if face is ours else ours.dataset(uri)
        table = reader.to_table(columns=["k", "v", *LINEAGE], with_row_id=True)
        found.append((reader.version, table.sort_by("k").to_pylist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("prepare", PLACES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("writer", [ours, official], ids=["ours", "official"])
def test_changes_lead_there(
    prepare: Callable[[Face, Path], str], writer: Face, tmp_path: Path
) -> None:
    uri = prepare(writer, tmp_path / "table.lance")
    start = ours.dataset(uri).version
    before = {row["_rowid"]: row for row in read(uri)}
    change(writer, uri)
    state = dict(before)
    for row in ours.dataset(uri).changes(start).read_all().to_pylist():
        if row["_change_type"] in ("delete", "update_preimage"):
            assert state.pop(row["_rowid"])["v"] == row["v"]
        else:
            state[row["_rowid"]] = row
    assert {i: row["v"] for i, row in state.items()} == {r["_rowid"]: r["v"] for r in read(uri)}


def read(uri: str) -> list[dict[str, Any]]:
    table = ours.dataset(uri).to_table(columns=["k", "v"], with_row_id=True)
    return list(table.to_pylist())
