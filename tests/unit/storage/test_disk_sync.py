"""Commits wait for the disk unless that is disabled."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lancelake.storage import disk_sync
from lancelake.storage.local import LocalStore

PROGRAM = "from lancelake.storage import disk_sync; print(disk_sync._choice['waits'])"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(os, "fsync", found.append)
    return found


def test_a_store_waits_for_the_disk(synced: list[int], tmp_path: Path) -> None:
    LocalStore(str(tmp_path)).put("a", b"")
    assert synced


def test_a_store_does_not_wait_when_told_so(synced: list[int], tmp_path: Path) -> None:
    with disk_sync.waiting(waits=False):
        LocalStore(str(tmp_path)).put("a", b"")
    assert synced == []


def test_a_store_waits_again_afterwards(synced: list[int], tmp_path: Path) -> None:
    with disk_sync.waiting(waits=False):
        pass
    LocalStore(str(tmp_path)).put("a", b"")
    assert synced


def test_each_new_folder_is_synced_into_its_parent(synced: list[int], tmp_path: Path) -> None:
    disk_sync.make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert len(synced) == 2
    disk_sync.make_folder(str(tmp_path / "a" / "b"))
    assert len(synced) == 2


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(NotADirectoryError):
        disk_sync.make_folder(str(tmp_path / "a"))
    with pytest.raises(NotADirectoryError):
        disk_sync.sync_folder(tmp_path / "a")


@pytest.mark.parametrize(("value", "waits"), [("off", "False"), ("on", "True")])
def test_the_environment_decides(value: str, waits: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LANCELAKE_FSYNC": value},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == waits
