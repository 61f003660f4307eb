"""Ctrl-C: what is left, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.commit.candidate import tally
from lancelake.data.column_file import DataFileWriter
from lancelake.storage.local import LocalStore
from tests.cli.conftest import Run

CSV = "a\n" + "1\n" * 10


@pytest.fixture(autouse=True)
def nothing_committed_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "published", 0)
    monkeypatch.setattr(tally, "in_doubt", 0)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    return path


def interrupted(call: Callable[..., object], *, after: bool) -> Callable[..., object]:
    """Return a call that is interrupted before or after it has its effect."""

    def stop(*args: object, **options: object) -> object:
        if after:
            call(*args, **options)
        raise KeyboardInterrupt

    return stop


def test_a_write_that_is_stopped_leaves_no_files(
    rows: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = DataFileWriter
    monkeypatch.setattr(writer, "write", interrupted(writer.write, after=True))
    result = run("write", rows, tmp_path / "t.lance")
    assert (result.exit_code, result.stderr) == (130, "Stopped: nothing was committed\n")
    assert [path for path in (tmp_path / "t.lance").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("after", [False, True])
def test_a_write_that_is_stopped_during_its_commit_keeps_its_files(
    rows: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    create = LocalStore.create
    monkeypatch.setattr(LocalStore, "create", interrupted(create, after=after))
    result = run("write", rows, tmp_path / "t.lance")
    assert result.exit_code == 130
    assert "a version was being committed" in result.stderr
    assert len(list((tmp_path / "t.lance" / "data").iterdir())) == 1
    if after:
        assert lance.dataset(tmp_path / "t.lance").count_rows() == 10


def test_a_command_that_is_stopped_after_its_commit_says_so(
    rows: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lancelake.cli.write_run._report", interrupted(run, after=False))
    result = run("write", rows, tmp_path / "t.lance")
    assert (result.exit_code, result.stderr) == (130, "Stopped: 1 version had been committed\n")
