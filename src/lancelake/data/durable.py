"""Durable creation of local files and folders."""

from __future__ import annotations

import os
from pathlib import Path

from lancelake.storage import disk_sync


def make_folder(folder: Path) -> None:
    """Create a folder and its parents durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_file(path: Path) -> None:
    """Sync the bytes of a file to disk."""
    _sync(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _sync(path: Path, flags: int) -> None:
    if not disk_sync.waits():
        return
    fd = os.open(path, flags)
    try:
        disk_sync.sync(fd)
    finally:
        os.close(fd)
