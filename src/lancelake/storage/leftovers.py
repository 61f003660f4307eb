"""What remains on local disk once the objects of a table are deleted, and how does it go?

Object stores have no folders. On disk, empty folders would look like a table or a branch.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from lancelake.storage.failures import DiskErrors
from lancelake.storage.local import is_staged
from lancelake.storage.location import Location


def remove_leftovers(location: Location, *, keep: tuple[str, ...] = ()) -> None:
    """Remove links, unfinished files and empty folders below a place on local disk.

    Links are removed, never followed. Folders named in `keep`, as paths below the place, stay.
    """
    if location.scheme != "file":
        return
    for folder, names in _folders(location.uri, keep):
        for path in (f"{folder}/{name}" for name in names):
            with DiskErrors(path, writes=True), contextlib.suppress(FileNotFoundError):
                if is_staged(path) or not stat.S_ISREG(Path(path).lstat().st_mode):
                    Path(path).unlink()
        _remove_if_empty(folder)


def remove_empty_folders(location: Location) -> None:
    """Remove the folders at and below a place on local disk that hold nothing but folders."""
    if location.scheme == "file":
        for folder, _ in _folders(location.uri, ()):
            _remove_if_empty(folder)


def _folders(root: str, keep: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield folders from the lowest up, each with what it holds that is no folder."""
    kept = tuple(f"{root}/{path}".rstrip("/") for path in keep)
    for folder, below, files in os.walk(root, topdown=False):
        if any(folder == path or folder.startswith(f"{path}/") for path in kept):
            continue
        links = [name for name in below if Path(folder, name).is_symlink()]
        yield folder, [*links, *files]


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        Path(folder).rmdir()
