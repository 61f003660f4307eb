"""Bytes of files, small ones read whole.

Opening a small file takes far longer than reading it, and data files never change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lancelake.caches import CacheKind, RecentlyUsed
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.schema import Schema
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import FileAt, TableFiles


class ByteSource(Protocol):
    """A file that can be read in ranges."""

    @property
    def name(self) -> str:
        """Name of the file in errors."""
        ...

    def size_bytes(self) -> int:
        """Length of the file."""
        ...

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes, or raise CorruptTableError when the file ends earlier."""
        ...


@dataclass(frozen=True)
class StoreSource:
    """A file in a store."""

    store: ObjectStore
    path: str
    known_size_bytes: int | None = None

    @property
    def name(self) -> str:
        """The path within the table."""
        return self.path

    def size_bytes(self) -> int:
        """Length of the file, which never changes."""
        return self._size_bytes

    @computed_once
    def _size_bytes(self) -> int:
        size_bytes = self.known_size_bytes
        return self.store.head(self.path).size_bytes if size_bytes is None else size_bytes

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes."""
        if start < 0 or length < 0 or start + length > self._size_bytes:
            raise _no_bytes(self.path, start, length)
        return self.store.get_range(self.path, start=start, length=length) if length else b""


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """A file that was read as a whole."""

    name: str
    data: bytes

    def size_bytes(self) -> int:
        """Length of the file."""
        return len(self.data)

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes."""
        if start < 0 or length < 0 or start + length > len(self.data):
            raise _no_bytes(self.name, start, length)
        return self.data[start : start + length]


def _no_bytes(path: str, start: int, length: int) -> CorruptTableError:
    return CorruptTableError(f"{path} has no bytes {start} to {start + length}", path=path)


_MOST_FRAGMENTS = 4096
_MOST_ROWS = 1024
_MOST_BYTES = 16 << 10

_MOST_SCHEMAS = 256

_Key = tuple[tuple[FileAt, ...], int]
_Kept = tuple[Schema, pa.RecordBatch]
"""A schema whose address is part of the key, and the rows."""

SMALL_FRAGMENTS: CacheKind[_Key, _Kept] = CacheKind(
    name="small_fragments",
    most_bytes=128 << 20,
    weight=lambda kept: 1024 + kept[1].nbytes,
    most_values=_MOST_FRAGMENTS,
)
_schemas: RecentlyUsed[Schema, Schema] = RecentlyUsed(_MOST_SCHEMAS)


def interned(schema: Schema) -> Schema:
    """Return the same object for equal schemas, because comparing schemas per file is slow."""
    return _schemas.get(schema, lambda: schema)


def remembered(
    files: TableFiles, fragment: Fragment, schema: Schema, read: Callable[[], pa.RecordBatch]
) -> pa.RecordBatch | None:
    """Return all physical rows of a fragment; None when it is not small.

    The cache key includes the identity of `schema`, see `interned`.
    """
    rows = fragment.physical_rows
    if rows is None or not 0 < rows <= _MOST_ROWS or not fragment.files:
        return None
    if any((file.file_size_bytes or _MOST_BYTES + 1) > _MOST_BYTES for file in fragment.files):
        return None
    key = tuple(files.data_file(file) for file in fragment.files), id(schema)
    cache = files.root.session.caches[SMALL_FRAGMENTS]
    entry = cache.find(key)
    if entry is not None:
        return entry[1]
    rows_read = read()
    # Few bytes of a file can encode many values.
    if rows_read.nbytes <= _MOST_BYTES:
        cache.put(key, (schema, rows_read))
    return rows_read
