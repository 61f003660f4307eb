"""Removal of empty folders, links and unfinished files on local disk.

Object stores have no folders. On disk, empty folders would look like a table or a branch.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from lancelake.storage.failures import DiskErrors
from lancelake.storage.local import has_link, is_staged
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectInfo


def remove_leftovers(location: Location, below: str = "", *, keep: tuple[str, ...] = ()) -> None:
    """Remove links, unfinished files and empty folders in a folder of a table on local disk.

    Links are removed, never followed. Paths below those in `keep` stay.
    """
    if location.scheme != "file" or has_link(location.uri, below):
        return
    kept = tuple(f"{location.uri}/{path}" for path in keep)
    for folder, names in _folders(f"{location.uri}/{below}".rstrip("/")):
        if f"{folder}/".startswith(kept):
            continue
        for path in (f"{folder}/{name}" for name in names):
            with DiskErrors(path, writes=True), contextlib.suppress(FileNotFoundError):
                if is_staged(path) or not stat.S_ISREG(Path(path).lstat().st_mode):
                    Path(path).unlink()
        _remove_if_empty(folder)


def unfinished_files(location: Location, folders: Iterable[str]) -> Iterator[ObjectInfo]:
    """List unfinished files of writers in some folders, which stores do not list."""
    if location.scheme != "file":
        return
    for start in folders:
        if has_link(location.uri, start):
            continue
        for folder, names in _folders(f"{location.uri}/{start}"):
            for path in (Path(folder, name) for name in names if is_staged(name)):
                with DiskErrors(path.name), contextlib.suppress(FileNotFoundError):
                    found = path.lstat()
                    relative = str(path).removeprefix(f"{location.uri}/")
                    yield ObjectInfo(relative, found.st_size, found.st_mtime_ns)


def remove_empty_folders(location: Location) -> None:
    """Remove the folders at and below a path on local disk that contain only folders."""
    if location.scheme == "file":
        for folder, _ in _folders(location.uri):
            _remove_if_empty(folder)


def _folders(root: str) -> Iterator[tuple[str, list[str]]]:
    """Yield folders bottom-up, each with its entries that are not folders."""
    for folder, below, files in os.walk(root, topdown=False):
        links = [name for name in below if Path(folder, name).is_symlink()]
        yield folder, [*links, *files]


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        Path(folder).rmdir()
