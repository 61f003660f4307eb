"""Durability of writes to local disk (fsync).

Files are synced before a call returns, so that a crash of the machine loses no acknowledged
write. The environment variable `LANCELAKE_FSYNC=off` disables this for speed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_choice = {"waits": os.environ.get("LANCELAKE_FSYNC", "on") != "off"}


def waits() -> bool:
    """Whether writes wait for the disk."""
    return _choice["waits"]


def sync(fd: int) -> None:
    """Sync an open file or folder to disk, unless that is disabled."""
    if _choice["waits"]:
        os.fsync(fd)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Sync the bytes of a file to disk, unless that is disabled."""
    _sync_path(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Sync the names in a folder to disk, unless that is disabled."""
    _sync_path(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def make_folder(folder: str) -> None:
    """Create a folder and its parents durably."""
    try:
        os.mkdir(folder)  # noqa: PTH102  # paths are plain text here
    except FileNotFoundError:
        make_folder(os.path.dirname(folder))  # noqa: PTH120  # paths are plain text here
        make_folder(folder)
    except FileExistsError:
        # A link without a target exists too, and nothing can be created below it.
        if not os.path.isdir(folder):  # noqa: PTH112  # paths are plain text here
            raise NotADirectoryError(errno.ENOTDIR, "Not a folder", folder) from None
    else:
        sync_folder(os.path.dirname(folder))  # noqa: PTH120  # paths are plain text here


def _sync_path(path: str | os.PathLike[str], flags: int) -> None:
    if not waits():
        return
    fd = os.open(path, flags)
    try:
        sync(fd)
    finally:
        os.close(fd)


@contextmanager
def waiting(*, waits: bool) -> Iterator[None]:
    """Enable or disable syncing in all threads within a `with` block."""
    before = _choice["waits"]
    _choice["waits"] = waits
    try:
        yield
    finally:
        _choice["waits"] = before
