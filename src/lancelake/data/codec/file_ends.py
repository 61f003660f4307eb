"""Ends of data files, read and checked once before the codec opens a file.

The codec trusts the numbers in them: a wrong one can make it take memory until the process ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextvars import Context
from dataclasses import replace
from struct import Struct

from lancelake.caches import CacheKind, Caches
from lancelake.data.codec.file_layout import MAGIC, TAIL_BYTES, Container, container_of
from lancelake.data.column_reader import StoreSource
from lancelake.errors import UnsupportedError
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import FileAt, local_path

_VERSION = Struct("<HH4s")
_LAST_LEGACY = (0, 2)
# Another read of a local file costs little; a request to a store does not.
_LOCAL_TAIL_BYTES = 4 << 10

# A local file may be replaced by another of its name, whose identity differs.
_Key = tuple[FileAt, tuple[int, ...]]

ENDS: CacheKind[_Key, Container] = CacheKind(
    name="metadata", most_bytes=32 << 20, weight=lambda end: len(end.tail)
)


def sound_end(place: FileAt) -> Container | None:
    """Return the end of a file; None for a file of the legacy format.

    Raises CorruptTableError for a file whose metadata points outside of it, and OSError or
    ObjectNotFoundError for one that cannot be read. The end of a file in an object store is read
    with one request.
    """
    if place.root.scheme == "file":
        return _local_end(place)
    key = place, ()
    end = place.root.session.caches[ENDS].find(key)
    if end is not None:
        return end
    tail, size_bytes = _store(place).get_suffix(place.path, length=TAIL_BYTES)
    return _kept(key, tail, size_bytes)


def size_below(roots: Iterable[str], caches: Caches) -> int:
    """Return the bytes of the cached ends of files below any of some URIs."""
    prefixes = tuple(f"{root.rstrip('/')}/" for root in roots)
    return caches[ENDS].weight_of(lambda key: key[0].uri.startswith(prefixes))


def container_at(place: FileAt) -> Container:
    """Return the end of a file; what else is read of the file is accounted to the operation."""
    end = sound_end(place)
    if end is None:
        msg = f"data file {place.path} has the legacy format"
        raise UnsupportedError(msg, path=place.path)
    source = StoreSource(place.store, place.path, end.size_bytes)
    return replace(end, source=source)


def regular_file(place: FileAt) -> str:
    """Return the path of a regular file; to read a pipe would block, and a device not end."""
    path = local_path(place.root, place.path)
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # paths are plain text here
        raise OSError(f"{path} is not a regular file")
    return path


def _local_end(place: FileAt) -> Container | None:
    descriptor = os.open(regular_file(place), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        key = place, (status.st_ino, status.st_size, status.st_mtime_ns)
        end = place.root.session.caches[ENDS].find(key)
        if end is not None:
            return end
        start = max(0, status.st_size - _LOCAL_TAIL_BYTES)
        os.lseek(descriptor, start, os.SEEK_SET)
        tail = os.read(descriptor, _LOCAL_TAIL_BYTES)
    finally:
        os.close(descriptor)
    return _kept(key, tail, start + len(tail))


def _kept(key: _Key, tail: bytes, size_bytes: int) -> Container | None:
    """Decode and check the end of a file, and keep what is needed of it."""
    if _is_legacy(tail):
        return None
    place, _ = key
    source = StoreSource(_store(place), place.path, size_bytes)
    end = container_of(source, tail, size_bytes).checked()
    is_whole = end.tail_start == 0 and place.root.scheme != "file"
    if not is_whole and end.global_buffers:
        start = max(end.tail_start, end.global_buffers[0].start)
        end = replace(end, tail=end.tail[start - end.tail_start :], tail_start=start)
    place.root.session.caches[ENDS].put(key, end)
    return end


def _is_legacy(tail: bytes) -> bool:
    if len(tail) < _VERSION.size:
        return False
    *version, magic = _VERSION.unpack(tail[-_VERSION.size :])
    return magic == MAGIC and tuple(version) <= _LAST_LEGACY


def _store(place: FileAt) -> ObjectStore:
    """Open the store outside of accounts, which do not count how the codec opens files."""
    return Context().run(lambda: place.store)
