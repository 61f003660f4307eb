"""LRU cache."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from lancelake.process import after_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """LRU cache of a fixed size.

    The size is the number of values or the sum of their weights.
    """

    def __init__(self, size: int, *, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._size = size
        self._weight = weight
        self._used = 0
        self._items: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        _caches.add(self)

    def peek(self, key: K) -> V | None:
        """Return the value of a key if it is cached."""
        with self._lock:
            return self._items.get(key)

    def find(self, key: K) -> V | None:
        """Return the value of a key if it is cached, and mark it as used."""
        with self._lock:
            if key not in self._items:
                return None
            self._items.move_to_end(key)
            return self._items[key]

    def find_all(self, keys: Sequence[K]) -> list[V | None]:
        """Return the values of keys that are cached, None for others, and mark them as used."""
        with self._lock:
            found = [self._items.get(key) for key in keys]
            for key, value in zip(keys, found, strict=True):
                if value is not None:
                    self._items.move_to_end(key)
            return found

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; create it if it is not cached."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        value = make()
        self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Cache the value of a key."""
        with self._lock:
            if key in self._items:
                self._used -= self._weight(self._items.pop(key))
            self._items[key] = value
            self._used += self._weight(value)
            while self._used > self._size:
                self._used -= self._weight(self._items.popitem(last=False)[1])

    def forget(self, is_unwanted: Callable[[K], bool]) -> None:
        """Remove the values of some keys."""
        with self._lock:
            for key in [key for key in self._items if is_unwanted(key)]:
                self._used -= self._weight(self._items.pop(key))

    def weight_of(self, is_wanted: Callable[[K], bool]) -> int:
        """Return the sum of the weights of some keys."""
        with self._lock:
            return sum(self._weight(value) for key, value in self._items.items() if is_wanted(key))

    def renew_lock(self) -> None:
        """Replace the lock after a fork, because a lost thread may hold it."""
        self._lock = threading.Lock()


def cached_by_identity(size: int) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Cache the results of a function by the object given, whose comparison would be slow."""

    def decorated(compute: Callable[[K], V]) -> Callable[[K], V]:
        # The argument is kept, so that no other object gets its id.
        known: RecentlyUsed[int, tuple[K, V]] = RecentlyUsed(size)
        return lambda item: known.get(id(item), lambda: (item, compute(item)))[1]

    return decorated


_caches: weakref.WeakSet[RecentlyUsed[Any, Any]] = weakref.WeakSet()


@after_fork
def _renew_locks() -> None:
    for cache in _caches:
        cache.renew_lock()
