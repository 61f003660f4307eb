"""Store that can be stopped before or after any of its calls."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Protocol, TypeVar

from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.storage.store import ObjectInfo, ObjectStore

T = TypeVar("T")


class Around(Protocol):
    """Decides what becomes of a call."""

    def __call__(self, call: str, path: str, carry_out: Callable[[], T], /) -> T: ...


class InterceptedStore:
    """Hands every call to `around` with its name, its path and the way to carry it out."""

    def __init__(self, inner: ObjectStore, around: Around) -> None:
        self._inner = inner
        self._around = around

    def get(self, path: str) -> bytes:
        return self._around("get", path, lambda: self._inner.get(path))

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        call = lambda: self._inner.get_range(path, start=start, length=length)  # noqa: E731
        return self._around("get_range", path, call)

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        call = lambda: self._inner.get_suffix(path, length=length)  # noqa: E731
        return self._around("get_suffix", path, call)

    def head(self, path: str) -> ObjectInfo:
        return self._around("head", path, lambda: self._inner.head(path))

    def exists(self, path: str) -> bool:
        return self._around("exists", path, lambda: self._inner.exists(path))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        return self._around("list", prefix, lambda: iter([*self._inner.list(prefix)]))

    def list_names(self, directory: str) -> builtins.list[str]:
        return self._around("list_names", directory, lambda: self._inner.list_names(directory))

    def list_dirs(self, directory: str) -> builtins.list[str]:
        return self._around("list_dirs", directory, lambda: self._inner.list_dirs(directory))

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        call = lambda: self._inner.smallest_names(directory, limit=limit)  # noqa: E731
        return self._around("smallest_names", directory, call)

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self._around("put", path, lambda: self._inner.put(path, data, durable=durable))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        self._around("put_stream", path, lambda: self._inner.put_stream(path, chunks))

    def create(self, path: str, data: bytes) -> None:
        self._around("create", path, lambda: self._inner.create(path, data))

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        call = lambda: self._inner.swap(path, data, expected=expected)  # noqa: E731
        return self._around("swap", path, call)

    def copy(self, source: str, target: str) -> None:
        self._around("copy", target, lambda: self._inner.copy(source, target))

    def delete(self, path: str) -> None:
        self._around("delete", path, lambda: self._inner.delete(path))

    def delete_many(self, paths: Iterable[str]) -> None:
        every = tuple(paths)
        self._around("delete_many", "", lambda: self._inner.delete_many(every))


class Crash(BaseException):
    """The process dies here; nothing in it can catch this."""


class Stop(Enum):
    """When a call is hit."""

    BEFORE = "before"
    AFTER = "after"


class FailingCalls:
    """Hits the calls of given numbers (from 0), before or after their effect."""

    def __init__(
        self,
        numbers: Iterable[int] = (),
        *,
        stop: Stop = Stop.BEFORE,
        error: Callable[[], BaseException] | None = None,
        only: frozenset[str] | None = None,
    ) -> None:
        self._numbers = set(numbers)
        self._stop = stop
        self._error = error or (lambda: StorageUnavailableError("no reply"))
        self._only = only
        self.calls: list[tuple[str, str]] = []

    def on(self, inner: ObjectStore) -> ObjectStore:
        """Return a store whose calls are hit."""
        return InterceptedStore(inner, self._around)

    def _around(self, call: str, path: str, carry_out: Callable[[], T]) -> T:
        if self._only is not None and call not in self._only:
            return carry_out()
        number = len(self.calls)
        self.calls.append((call, path))
        if number not in self._numbers:
            return carry_out()
        if self._stop is Stop.AFTER:
            try:
                carry_out()
            except LanceTableError:
                # What the call had to say is lost as well.
                raise self._error() from None
        raise self._error()
