"""A diff lists all differences between two versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lancelake.pylance

face: Any = lancelake.pylance
official: Any = lance


def test_a_dataset_is_compared_with_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "table.lance"
    official.write_dataset(pa.table({"x": [1, 2]}), path)
    official.write_dataset(pa.table({"x": [3]}), path, mode="append")
    official.dataset(path).add_columns({"y": "x + 1"})
    official.dataset(path).update_config({"key": "value"})
    official.dataset(path).tags.create("start", 1)
    found = face.dataset(path).diff("start")
    assert (found.rows.before, found.rows.after) == (2, 3)
    assert [(p.name, p.before, p.after.type) for p in found.columns] == [("y", None, "int64")]
    assert [(p.name, p.before, p.after) for p in found.config] == [("key", None, "value")]
    assert [(p.name, p.before is None) for p in found.fragments] == [("0", False), ("1", True)]
    assert (found.refs.before.tags, found.refs.after.tags) == (("start",), ())


def test_both_versions_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "table.lance"
    for mode in ("create", "append", "append"):
        official.write_dataset(pa.table({"x": [1]}), path, mode=mode)
    found = face.dataset(path).diff(3, 2)
    assert (found.rows.before, found.rows.after) == (3, 2)
    assert face.dataset(path).diff(3).is_empty


def test_refs_of_a_branch_are_not_those_of_the_main_line(tmp_path: Path) -> None:
    path = tmp_path / "table.lance"
    official.write_dataset(pa.table({"x": [1]}), path)
    official.dataset(path).tags.create("start", 1)
    branch = official.dataset(path).create_branch("side", 1)
    found = face.dataset(path).diff(1, ("side", 1))
    assert (found.refs.before.tags, found.refs.before.branches) == (("start",), ("side",))
    assert found.refs.after.tags == ()
    assert face.dataset(branch.uri).diff(1).rows.after == 1
