"""A cache that forgets what was not used for longest."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from lancelake.process import after_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """A cache of a fixed size that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()
        _caches.add(self)

    def peek(self, key: K) -> V | None:
        """Return the value of a key if it is there."""
        with self._lock:
            return self._items.get(key)

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made if it is not there."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        value = make()
        with self._lock:
            self._items[key] = value
            while len(self._items) > self._size:
                self._items.popitem(last=False)
        return value

    def forget(self, is_unwanted: Callable[[K], bool]) -> None:
        """Let go of what has one of some keys."""
        with self._lock:
            for key in [key for key in self._items if is_unwanted(key)]:
                del self._items[key]

    def renew_lock(self) -> None:
        """Replace the lock, which a thread that a fork has lost may hold."""
        self._lock = threading.Lock()


_caches: weakref.WeakSet[RecentlyUsed[Any, Any]] = weakref.WeakSet()


@after_fork
def _renew_locks() -> None:
    for cache in _caches:
        cache.renew_lock()
