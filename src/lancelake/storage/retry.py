"""Store wrapper that retries failed calls with backoff."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from lancelake.clock import Clock, Ids
from lancelake.errors import StorageUnavailableError
from lancelake.storage.store import ObjectInfo, ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to retry after `StorageUnavailableError`."""

    max_retries: int = 5
    timeout_s: float = 180.0
    first_delay_s: float = 0.2
    max_delay_s: float = 15.0

    def delay_s(self, attempt: int, chance: float) -> float:
        """Return the wait before retry `attempt` (from 0): exponential, 50 to 100 % of it."""
        full = min(self.max_delay_s, self.first_delay_s * 2.0 ** min(attempt, 32))
        return full * (0.5 + chance / 2)


DEFAULT_RETRY = RetryPolicy()


class RetryingStore:
    """Retries every idempotent call; `create` and `swap` are made once."""

    __slots__ = ("_clock", "_ids", "_inner", "_lists_in_order", "_policy")

    def __init__(
        self,
        inner: ObjectStore,
        *,
        policy: RetryPolicy,
        clock: Clock,
        ids: Ids,
        lists_in_order: bool,
    ) -> None:
        """Wrap a store that does not retry."""
        self._inner = inner
        self._lists_in_order = lists_in_order
        self._policy = policy
        self._clock = clock
        self._ids = ids

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        return self._tried(lambda: self._inner.get(path))

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        return self._tried(lambda: self._inner.get_range(path, start=start, length=length))

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        return self._tried(lambda: self._inner.get_suffix(path, length=length))

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        return self._tried(lambda: self._inner.head(path))

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        return self._tried(lambda: self._inner.exists(path))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder, each once, also after a retry."""
        last = ""
        attempts = _Attempts(self._policy, self._clock, self._ids)
        while True:
            try:
                for info in self._inner.list(prefix):
                    if not last or not self._lists_in_order or info.path > last:
                        last = info.path
                        yield info
                return
            except StorageUnavailableError as error:
                if last and not self._lists_in_order:
                    raise
                attempts.wait_after(error)

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        return self._tried(lambda: self._inner.list_names(directory))

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        return self._tried(lambda: self._inner.list_dirs(directory))

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first names of a folder in ascending order, if the store lists in order."""
        return self._tried(lambda: self._inner.smallest_names(directory, limit=limit))

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other."""
        self._tried(lambda: self._inner.put(path, data, durable=durable))

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        self._tried(lambda: self._inner.put_stream(path, chunks))

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free; not retried, since a lost reply may hide success."""
        self._inner.create(path, data)

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`; not retried, as `create`."""
        return self._inner.swap(path, data, expected=expected)

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        self._tried(lambda: self._inner.copy(source, target))

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self._tried(lambda: self._inner.delete(path))

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist."""
        every = tuple(paths)
        self._tried(lambda: self._inner.delete_many(every))

    def _tried(self, call: Callable[[], T]) -> T:
        attempts = _Attempts(self._policy, self._clock, self._ids)
        while True:
            try:
                return call()
            except StorageUnavailableError as error:
                attempts.wait_after(error)


class _Attempts:
    """Failures of one call."""

    __slots__ = ("_clock", "_deadline_s", "_ids", "_policy", "_retries")

    def __init__(self, policy: RetryPolicy, clock: Clock, ids: Ids) -> None:
        self._policy = policy
        self._clock = clock
        self._ids = ids
        self._deadline_s = clock.monotonic_s() + policy.timeout_s
        self._retries = 0

    def wait_after(self, error: StorageUnavailableError) -> None:
        """Wait for the next attempt, or raise the error when there is none left."""
        delay_s = self._policy.delay_s(self._retries, self._ids.random())
        out_of_time = self._clock.monotonic_s() + delay_s > self._deadline_s
        if self._retries >= self._policy.max_retries or out_of_time:
            raise error
        self._retries += 1
        self._clock.sleep(delay_s)
