"""Object store interface."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lancelake.errors import InvalidRequestError, StorageError


# A tuple, because listings have thousands of them.
class ObjectInfo(NamedTuple):
    """Metadata of an object."""

    path: str
    size_bytes: int
    modified_ns: int
    e_tag: str | None = None


class ObjectStore(Protocol):
    """Objects at paths below one root.

    Paths are relative to the root, separated by `/`, and taken literally: `%`, `#` and blanks are
    ordinary characters. Every error is one of `ObjectNotFoundError`, `AlreadyExistsError`,
    `StorageDeniedError`, `StorageUnavailableError`, `StorageError`, `UnsupportedError`.
    """

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        ...

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes; raise `StorageError` when the object ends earlier.

        Nothing is read or checked when `length` is 0.
        """
        ...

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, or all if there are fewer, and the object's size."""
        ...

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        ...

    def exists(self, path: str) -> bool:
        """Whether an object (not a folder) exists at this path."""
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder, in any order; a missing folder is empty."""
        ...

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder, in any order."""
        ...

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder, in any order."""
        ...

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first `limit` names of `list_names` in ascending order, in few calls.

        None when the store does not list in order.
        """
        ...

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other: readers see the old bytes or the new ones.

        On local disk the object is durable when this returns, unless syncing is disabled.
        """
        ...

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Like `put`, with bytes that need not fit into memory.

        `chunks` is iterated again on every attempt.
        """
        ...

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free, or raise `AlreadyExistsError`.

        Of several concurrent creates exactly one succeeds. On local disk the object is durable
        when this returns. After `StorageUnavailableError` the object may or may not exist:
        creates are never retried.
        """
        ...

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced.

        Of several concurrent swaps that expect the same, one succeeds, unless the store cannot
        compare. After `StorageUnavailableError` the object may or may not be replaced: swaps are
        never retried.
        """
        ...

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        ...

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        ...

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist. After an error some may be left."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChunks:
    """An object as a stream that can be read repeatedly."""

    store: ObjectStore
    path: str
    chunk_bytes: int = 16 * 1024 * 1024

    def __iter__(self) -> Iterator[bytes]:
        size = self.store.head(self.path).size_bytes
        for start in range(0, size, self.chunk_bytes):
            length = min(self.chunk_bytes, size - start)
            yield self.store.get_range(self.path, start=start, length=length)


def copy_across(source: ObjectChunks, target: ObjectStore, path: str) -> None:
    """Copy an object into another store without loading it into memory."""
    target.put_stream(path, source)


def ensure_range(path: str, start: int, length: int) -> None:
    """Raise for a negative start or length."""
    if start < 0 or length < 0:
        raise InvalidRequestError(
            f"bytes {start} to {start + length} of {path!r} are not a valid range", path=path
        )


def ensure_whole(data: bytes, path: str, start: int, length: int) -> bytes:
    """Return the bytes read, or raise when the object ended too early."""
    if len(data) != length:
        raise ends_early(path, start, length)
    return data


def ends_early(path: str, start: int, length: int) -> StorageError:
    """Return the error for an object that ends before the end of a range."""
    return StorageError(
        f"{path!r} ends before byte {start + length}", path=path, start=start, length=length
    )
