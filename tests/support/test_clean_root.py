"""Files that tests leave in the working directory are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clean_root import CleanRoot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".gitignore").write_text("*.pyc\n/build/\n")
    (tmp_path / "README.md").touch()
    return tmp_path


def test_new_files_and_folders_are_named_once(root: Path) -> None:
    clean = CleanRoot(root)
    assert clean.left() == []
    (root / "scan").touch()
    (root / "warehouse" / "t.lance").mkdir(parents=True)
    (root / "warehouse" / "t.lance" / "0.txn").touch()
    assert clean.left() == ["scan", "warehouse"]
    assert clean.left() == []


def test_ignored_names_and_empty_folders_are_accepted(root: Path) -> None:
    clean = CleanRoot(root)
    (root / "build").mkdir()
    (root / "build" / "out").touch()
    (root / "m.pyc").touch()
    (root / "artifacts" / "empty").mkdir(parents=True)
    assert clean.left() == []
