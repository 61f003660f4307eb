"""Local copies of files that the codec cannot reach where they are."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import shutil
import tempfile
import threading
from pathlib import Path

from lancelake.data.table_files import FileAt
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.store import ObjectChunks, copy_across

_lock = threading.Lock()
_folders: list[Path] = []
_numbers = itertools.count()


def folder() -> Path:
    """Return a folder of this process, removed when it ends."""
    with _lock:
        if not _folders:
            made = Path(tempfile.mkdtemp(prefix="lancelake-"))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            _folders.append(made)
        return _folders[0]


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
