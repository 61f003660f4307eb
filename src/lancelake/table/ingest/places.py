"""Files to take rows from: local files, patterns, folders and objects in a store."""

from __future__ import annotations

import glob
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import pyarrow as pa

from lancelake.errors import InvalidRequestError, NotFoundError
from lancelake.storage.location import Location, is_uri
from lancelake.storage.store import ObjectStore

Locate: TypeAlias = Callable[[str], Location]
"""Finds the location of a URI, with the options of its store."""

STDIN = "-"
DELTA_LOG = "_delta_log"
_LANCE_VERSIONS = "_versions"
_HIDDEN = ("_", ".")
_BUFFER_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class SourceFile:
    """A file to read: on local disk, or an object of a store."""

    name: str
    place: Location | None = None
    """The folder of an object; None on local disk and for standard input."""

    @property
    def is_stdin(self) -> bool:
        """Whether this is standard input."""
        return self.name == STDIN

    @cached_property
    def size_bytes(self) -> int:
        """Size of the file; 0 for standard input."""
        if self.is_stdin:
            return 0
        if self.place is None:
            return Path(self.name).stat().st_size
        return self.place.store.head(self.path).size_bytes

    @property
    def path(self) -> str:
        """Path of an object below its folder."""
        return self.name if self.place is None else self.name[len(self.place.uri) + 1 :]

    def open(self) -> Any:  # pyarrow's files have no types
        """Open for random access."""
        if self.place is None:
            return pa.OSFile(self.name)
        raw = _ObjectFile(self.place.store, self.path, self.size_bytes)
        return pa.PythonFile(io.BufferedReader(raw, _BUFFER_BYTES), mode="r")

    def open_binary(self) -> BinaryIO:
        """Open as a Python file."""
        if self.place is None:
            return Path(self.name).open("rb")
        raw = _ObjectFile(self.place.store, self.path, self.size_bytes)
        return io.BufferedReader(raw, _BUFFER_BYTES)


class _ObjectFile(io.RawIOBase):
    """An object of a store as a file that is read in ranges."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._store, self._path, self._size = store, path, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:  # any writable buffer
        length = max(0, min(len(buffer), self._size - self._at))
        if length:
            data = self._store.get_range(self._path, start=self._at, length=length)
            buffer[:length] = data
            self._at += length
        return length


def find_sources(
    patterns: Sequence[str], locate: Locate, suffixes: Sequence[str]
) -> tuple[SourceFile, ...]:
    """Return the source files: those of patterns and folders in name order.

    In a folder, files with one of the suffixes are found at any depth, without hidden ones.
    """
    if STDIN in patterns and len(patterns) > 1:
        raise InvalidRequestError("standard input cannot be combined with files")
    return tuple(file for p in patterns for file in _matching(p, locate, tuple(suffixes)))


def is_delta(folder: str, locate: Locate) -> bool:
    """Whether a folder has a Delta table."""
    if "://" in folder:
        store = locate(folder).store
        return bool(store.smallest_names(DELTA_LOG, limit=1) or store.list_names(DELTA_LOG))
    return (Path(folder) / DELTA_LOG).is_dir()


def _matching(pattern: str, locate: Locate, suffixes: tuple[str, ...]) -> list[SourceFile]:
    if pattern == STDIN or Path(pattern).is_file():
        return [SourceFile(pattern)]
    if "://" in pattern:
        return _remote(pattern, locate, suffixes)
    if Path(pattern).is_dir():
        return _of_folder(pattern, suffixes)
    names = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())  # noqa: PTH207  # a pattern may be absolute
    if not names and is_uri(pattern):
        return _remote(pattern, locate, suffixes)
    if not names:
        raise NotFoundError(f"file {pattern!r} does not exist", path=pattern)
    return [SourceFile(name) for name in names]


def _of_folder(folder: str, suffixes: tuple[str, ...]) -> list[SourceFile]:
    root = Path(folder)
    _ensure_files(folder, [entry.name for entry in root.iterdir()])
    names = (path for path in root.rglob("*") if path.is_file())
    shown = [path for path in names if not _is_hidden(path.relative_to(root).parts)]
    return _recognised(folder, (SourceFile(str(path)) for path in sorted(shown)), suffixes)


def _remote(uri: str, locate: Locate, suffixes: tuple[str, ...]) -> list[SourceFile]:
    if "*" in uri:
        msg = f"{uri!r} is a pattern, which only local files can have"
        raise InvalidRequestError(msg, action="Name a folder or a file.")
    place = locate(uri)
    folder, _, name = place.uri.rpartition("/")
    parent = locate(folder)
    if "://" in folder and parent.store.exists(name):
        return [SourceFile(place.uri, parent)]
    store = place.store
    _ensure_files(uri, store.list_dirs(""))
    paths = sorted(info.path for info in store.list())
    shown = [path for path in paths if not _is_hidden(tuple(path.split("/")))]
    return _recognised(uri, (SourceFile(f"{place.uri}/{path}", place) for path in shown), suffixes)


def _recognised(
    folder: str, files: Iterator[SourceFile], suffixes: tuple[str, ...]
) -> list[SourceFile]:
    every = list(files)
    known = [file for file in every if file.name.lower().endswith(suffixes)]
    if not known:
        what = "no files" if not every else "no files of a known format"
        raise NotFoundError(f"{folder!r} has {what}", path=folder)
    return known


def _ensure_files(folder: str, entries: Sequence[str]) -> None:
    """Refuse folders that are tables: their files alone are not their rows."""
    if DELTA_LOG in entries:
        msg = f"{folder!r} is a Delta table"
        raise InvalidRequestError(msg, action=f"Use `lancelake convert {folder} URI`.")
    if _LANCE_VERSIONS in entries:
        msg = f"{folder!r} is a Lance table"
        raise InvalidRequestError(msg, action="Use `lancelake clone` to copy it.")


def _is_hidden(parts: tuple[str, ...]) -> bool:
    # A folder such as _day=1 is a partition, not a hidden folder.
    return any(part.startswith(_HIDDEN) and "=" not in part for part in parts)
