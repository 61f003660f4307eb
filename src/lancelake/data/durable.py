"""Local files and folders that survive a crash of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from lancelake.storage import disk_sync


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_file(path: Path) -> None:
    """Bring a file's bytes to disk."""
    _sync(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _sync(path: Path, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        disk_sync.sync(fd)
    finally:
        os.close(fd)
