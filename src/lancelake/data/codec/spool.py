"""Local copies of files that the codec cannot access directly."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import os
import shutil
import tempfile
import threading
from pathlib import Path

from lancelake.process import after_fork
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectChunks, copy_across
from lancelake.storage.table_files import FileAt

_numbers = itertools.count()


class _Folder:
    """Temporary folder of this process, created on first use."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.parent: Path | None = None
        self.lock = threading.Lock()

    def forget(self) -> None:
        """Leave the folder and its lock to the parent process."""
        self.path, self.lock = None, threading.Lock()


_folder = _Folder()
after_fork(_folder.forget)


def folder() -> Path:
    """Return the folder of this process, which is removed at exit."""
    with _folder.lock:
        if _folder.path is None:
            _folder.path = Path(tempfile.mkdtemp(prefix="lancelake-", dir=_folder.parent))
            atexit.register(_remove, _folder.path, os.getpid())
        return _folder.path


def holds(place: FileAt) -> bool:
    """Whether a file is in the folder of this process, so that reading it is no I/O of a table."""
    path = _folder.path
    return path is not None and place.root.scheme == "file" and place.root.uri.startswith(str(path))


def use_parent(parent: Path) -> None:
    """Create the folder of this process and of its forks below another one.

    For processes that are killed, and whose owner removes the parent.
    """
    _folder.parent = parent


def _remove(path: Path, pid: int) -> None:
    # A forked child inherits its parent's exit handlers.
    if pid == os.getpid():
        shutil.rmtree(path, ignore_errors=True)


def local_path(*parts: str) -> Path:
    """Return the path for a copy identified by these parts."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return folder() / f"{digest}.lance"


def fresh_path() -> Path:
    """Return a path that no other file of this process has."""
    return folder() / f"{next(_numbers)}.lance"


def local_copy(place: FileAt) -> str:
    """Copy a file to local disk, once per process, and return its path."""
    target = local_path(place.uri)
    if not target.exists():
        store = open_store(place.root)
        source = ObjectChunks(store=store, path=place.path)
        copy_across(source, open_store(Location.parse(target.parent)), target.name)
    return str(target)
