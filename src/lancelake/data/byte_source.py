"""Random access to the bytes of an immutable file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lancelake.errors import CorruptTableError
from lancelake.format.computed_once import computed_once
from lancelake.storage.store import ObjectStore


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

    @property
    def name(self) -> str:
        """The path within the table."""
        return self.path

    def size_bytes(self) -> int:
        """Length of the file, which never changes."""
        return self._size_bytes

    @computed_once
    def _size_bytes(self) -> int:
        return self.store.head(self.path).size_bytes

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
