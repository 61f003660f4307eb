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
