"""`lancelake clone`: deep and shallow clones of a version."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Document = Callable[..., Any]
Run = Callable[..., Result]


@pytest.mark.parametrize("kind", ["shallow", "deep"])
def test_a_clone_has_the_rows_of_the_version(
    kind: str, document: Document, sound: Path, tmp_path: Path
) -> None:
    target = tmp_path / "clone.lance"
    body = document("clone", sound, target, f"--{kind}", "--at", "first")
    assert (body["kind"], body["version"], body["source"]["version"]) == (kind, 1, 1)
    assert document("count", target)["rows"] == 20


def test_a_clone_is_shallow_unless_asked_otherwise(
    document: Document, sound: Path, tmp_path: Path
) -> None:
    document("clone", sound, tmp_path / "clone.lance")
    assert not (tmp_path / "clone.lance" / "data").exists()


def test_a_deep_clone_outlives_its_source(
    output: Callable[..., str], table: Path, tmp_path: Path
) -> None:
    output("clone", table, tmp_path / "clone.lance", "--deep")
    shutil.rmtree(table)
    assert output("check", tmp_path / "clone.lance", "--data").startswith("no problems found")


def test_a_taken_target_is_refused_before_anything_is_copied(
    run: Run, sound: Path, table: Path
) -> None:
    before = sorted(table.rglob("*"))
    assert run("clone", sound, table, "--deep").exit_code == 4
    assert sorted(table.rglob("*")) == before


def test_a_missing_source_exits_with_3(run: Run, tmp_path: Path) -> None:
    assert run("clone", tmp_path / "nothing", tmp_path / "clone.lance").exit_code == 3
