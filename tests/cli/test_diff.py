"""`lancelake diff`: the differences between two versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from typer.testing import Result

from tests.support.official import Official

Document = Callable[..., Any]
KEYS = {
    "before", "after", "is_empty", "refs", "rows", "columns", "config", "table_metadata",
    "schema_metadata", "features", "base_paths", "fragments", "indices",
}  # fmt: skip


def test_a_version_does_not_differ_from_itself(output: Callable[..., str], sound: Path) -> None:
    assert output("diff", sound, "3", "3").splitlines()[-1] == "no differences"


def test_the_document_has_all_keys(document: Document, sound: Path) -> None:
    body = document("diff", sound, "1", "1")
    assert set(body) == KEYS
    assert body["is_empty"] is True


def test_rows_and_fragments_that_came(document: Document, sound: Path) -> None:
    body = document("diff", sound, "1", "2")
    (fragment,) = body["fragments"]
    assert (body["rows"]["before"], body["rows"]["after"]) == (20, 30)
    assert (fragment["name"], fragment["before"], fragment["after"]["rows"]) == ("2", None, 10)


def test_deleted_rows_change_fragments(document: Document, sound: Path) -> None:
    changed = document("diff", sound, "2", "3")["fragments"]
    assert [f["after"]["deleted_rows"] for f in changed] == [2, 1]
    assert all(f["before"]["deleted_rows"] == 0 for f in changed)


def test_settings_and_indices_that_came(document: Document, sound: Path) -> None:
    body = document("diff", sound, "3")
    assert [(p["name"], p["before"], p["after"]) for p in body["config"]] == [
        ("key", None, "value")
    ]
    assert [p["name"] for p in body["indices"]] == ["id_idx"]


def test_going_back_what_came_went(output: Callable[..., str], sound: Path) -> None:
    assert "- 2  10 rows, 1 file" in output("diff", sound, "2", "1")


def test_a_branch_is_compared_with_the_main_line(document: Document, sound: Path) -> None:
    body = document("diff", sound, "5", "side:")
    assert (body["before"]["branch"], body["after"]["branch"]) == (None, "side")


def test_columns_go_by_id(
    document: Document, output: Callable[..., str], official_14: Official, tmp_path: Path
) -> None:
    code = """
table = lance.write_dataset(pa.table({"x": [1], "y": [2]}), uri)
table.alter_columns({"path": "x", "name": "z"})
table.drop_columns(["y"])
"""
    official_14.run(tmp_path / "t.lance", code)
    renamed, gone = document("diff", tmp_path / "t.lance", "1")["columns"]
    assert (renamed["before"]["path"], renamed["after"]["path"]) == ("x", "z")
    assert (gone["before"]["path"], gone["after"]) == ("y", None)
    assert "~ x → z  int64" in output("diff", tmp_path / "t.lance", "1")


def test_an_overwrite_that_gives_out_ids_again_replaces_fragments(
    document: Document, official_14: Official, tmp_path: Path
) -> None:
    for mode in ("create", "overwrite"):
        official_14.write(tmp_path / "t.lance", pa.table({"x": [1]}), mode=mode)
    sides = [
        (f["before"] is None, f["after"] is None)
        for f in document("diff", tmp_path / "t.lance", "1", "2")["fragments"]
    ]
    assert sorted(sides) == [(False, True), (True, False)]


def test_a_missing_version_exits_with_3(run: Callable[..., Result], sound: Path) -> None:
    assert run("diff", sound, "1", "99").exit_code == 3


def test_tags_and_branches_stand_behind_versions(
    output: Callable[..., str], document: Document, sound: Path
) -> None:
    assert output("diff", sound, "1", "5").splitlines()[0] == "version  1 [first] → 5 [side:]"
    refs = document("diff", sound, "1", "5")["refs"]
    assert refs["before"] == {"tags": ["first"], "branches": []}
    assert refs["after"] == {"tags": [], "branches": ["side"]}
