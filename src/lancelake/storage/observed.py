"""Store wrapper that reports calls and bytes."""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator

from lancelake.storage.store import ObjectInfo, ObjectStore


class ObservedStore(ABC):
    """Forwards every call and reports it to a subclass."""

    def __init__(self, inner: ObjectStore) -> None:
        """Report the calls made to `inner` through this store."""
        self._inner = inner

    @abstractmethod
    def _called(self, call: str, *paths: str) -> None:
        """Record a call that is about to be made."""

    @abstractmethod
    def _got(self, data: bytes) -> bytes:
        """Record bytes that were read, and return them."""

    @abstractmethod
    def _wrote(self, size_bytes: int) -> None:
        """Record bytes that were written."""

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        self._called("get", path)
        return self._got(self._inner.get(path))

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        self._called("get_range", path)
        return self._got(self._inner.get_range(path, start=start, length=length))

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        self._called("get_suffix", path)
        data, size = self._inner.get_suffix(path, length=length)
        return self._got(data), size

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        self._called("head", path)
        return self._inner.head(path)

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        self._called("exists", path)
        return self._inner.exists(path)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder."""
        self._called("list", prefix)
        return self._inner.list(prefix)

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        self._called("list_names", directory)
        return self._inner.list_names(directory)

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        self._called("list_dirs", directory)
        return self._inner.list_dirs(directory)

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first names of a folder in ascending order, if the store lists in order.

        Not reported when the store does not support it.
        """
        names = self._inner.smallest_names(directory, limit=limit)
        if names is not None:
            self._called("smallest_names", directory)
        return names

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other."""
        self._called("put", path)
        self._inner.put(path, data, durable=durable)
        self._wrote(len(data))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        self._called("put_stream", path)
        self._inner.put_stream(path, _Reported(chunks, self._wrote))

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free."""
        self._called("create", path)
        self._inner.create(path, data)
        self._wrote(len(data))

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced."""
        self._called("swap", path)
        is_done = self._inner.swap(path, data, expected=expected)
        if is_done:
            self._wrote(len(data))
        return is_done

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        self._called("copy", source)
        self._inner.copy(source, target)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._called("delete", path)
        self._inner.delete(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist."""
        every = tuple(paths)
        self._called("delete_many", *every)
        self._inner.delete_many(every)


class _Reported:
    """A stream that reports its bytes."""

    def __init__(self, chunks: Iterable[bytes], report: Callable[[int], None]) -> None:
        self._chunks = chunks
        self._report = report

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._report(len(chunk))
            yield chunk
