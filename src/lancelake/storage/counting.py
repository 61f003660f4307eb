"""Store wrapper that counts calls and bytes, for I/O budgets."""

from __future__ import annotations

import builtins
import threading
from collections import Counter
from collections.abc import Iterable, Iterator

from lancelake.storage.store import ObjectInfo, ObjectStore


class CountingStore:
    """Forwards every call and counts it."""

    def __init__(self, inner: ObjectStore) -> None:
        """Count the calls made to `inner` through this store."""
        self._inner = inner
        self._lock = threading.Lock()
        self.calls: Counter[str] = Counter()
        self.paths: builtins.list[tuple[str, str]] = []
        self.bytes_read = 0
        self.bytes_written = 0

    @property
    def total(self) -> int:
        """Number of calls of every kind."""
        return self.calls.total()

    def reset(self) -> None:
        """Reset the counters."""
        self.calls.clear()
        self.paths.clear()
        self.bytes_read = 0
        self.bytes_written = 0

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        self._count("get", path)
        return self._read(self._inner.get(path))

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        self._count("get_range", path)
        return self._read(self._inner.get_range(path, start=start, length=length))

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        self._count("get_suffix", path)
        data, size = self._inner.get_suffix(path, length=length)
        return self._read(data), size

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        self._count("head", path)
        return self._inner.head(path)

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        self._count("exists", path)
        return self._inner.exists(path)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder."""
        self._count("list", prefix)
        return self._inner.list(prefix)

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        self._count("list_names", directory)
        return self._inner.list_names(directory)

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        self._count("list_dirs", directory)
        return self._inner.list_dirs(directory)

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first names of a folder in ascending order, if the store lists in order.

        Not counted when the store does not support it.
        """
        names = self._inner.smallest_names(directory, limit=limit)
        if names is not None:
            self._count("smallest_names", directory)
        return names

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other."""
        self._count("put", path)
        self._inner.put(path, data, durable=durable)
        self.bytes_written += len(data)

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        self._count("put_stream", path)
        self._inner.put_stream(path, _Counted(self, chunks))

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free."""
        self._count("create", path)
        self._inner.create(path, data)
        self.bytes_written += len(data)

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced."""
        self._count("swap", path)
        is_done = self._inner.swap(path, data, expected=expected)
        self.bytes_written += len(data) if is_done else 0
        return is_done

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        self._count("copy", source)
        self._inner.copy(source, target)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._count("delete", path)
        self._inner.delete(path)

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist."""
        every = tuple(paths)
        self._count("delete_many", *every)
        self._inner.delete_many(every)

    def _count(self, call: str, *paths: str) -> None:
        with self._lock:
            self.calls[call] += 1
            self.paths.extend((call, path) for path in paths)

    def _read(self, data: bytes) -> bytes:
        with self._lock:
            self.bytes_read += len(data)
        return data


class _Counted:
    """A stream that reports its bytes."""

    def __init__(self, account: CountingStore, chunks: Iterable[bytes]) -> None:
        self._account = account
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._account.bytes_written += len(chunk)
            yield chunk
