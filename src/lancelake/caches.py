"""Caches of what was read: one for each kind of content, with bounds in bytes."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lancelake.threads import after_fork

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentlyUsed(Generic[K, V]):
    """LRU cache with a bound of the sum of the weights of its values, by default their number."""

    def __init__(
        self,
        size: int,
        *,
        weight: Callable[[V], int] = lambda _: 1,
        most_values: int | None = None,
        grew: Callable[[], None] = lambda: None,
    ) -> None:
        """Create an empty cache; `grew` is called after a value was added."""
        self._size = size
        self._weight = weight
        self._most_values = size if most_values is None else most_values
        self._grew = grew
        self._used = 0
        # Each value with its weight, which is not computed again: a value may change.
        self._items: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        _every_cache.add(self)

    def peek(self, key: K) -> V | None:
        """Return the value of a key if it is cached."""
        with self._lock:
            item = self._items.get(key)
            return None if item is None else item[0]

    def find(self, key: K) -> V | None:
        """Return the value of a key if it is cached, and mark it as used."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            self._items.move_to_end(key)
            return item[0]

    def find_all(self, keys: Sequence[K]) -> list[V | None]:
        """Return the values of keys that are cached, None for others, and mark them as used."""
        with self._lock:
            items = [self._items.get(key) for key in keys]
            for key, item in zip(keys, items, strict=True):
                if item is not None:
                    self._items.move_to_end(key)
            return [None if item is None else item[0] for item in items]

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; create it if it is not cached."""
        with self._lock:
            # Each step computes the hash of the key, which takes most of the time.
            item = self._items.get(key)
            if item is not None:
                self._items.move_to_end(key)
                return item[0]
        value = make()
        self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Cache the value of a key."""
        weight = self._weight(value)
        with self._lock:
            if key in self._items:
                self._used -= self._items.pop(key)[1]
            self._items[key] = value, weight
            self._used += weight
            while self._items and (self._used > self._size or len(self._items) > self._most_values):
                self._used -= self._items.popitem(last=False)[1][1]
            if not self._items:
                # A signal handler may have raised between two changes.
                self._used = 0
        self._grew()

    def forget(self, is_unwanted: Callable[[K], bool]) -> None:
        """Remove the values of some keys."""
        with self._lock:
            for key in [key for key in self._items if is_unwanted(key)]:
                self._used -= self._items.pop(key)[1]

    def forget_oldest(self) -> None:
        """Remove the value that was not used for longest."""
        with self._lock:
            if self._items:
                self._used -= self._items.popitem(last=False)[1][1]
            if not self._items:
                self._used = 0

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._items.clear()
            self._used = 0

    def weight_of(self, is_wanted: Callable[[K], bool]) -> int:
        """Return the sum of the weights of some keys."""
        with self._lock:
            return sum(weight for key, (_, weight) in self._items.items() if is_wanted(key))

    @property
    def used(self) -> int:
        """Sum of the weights of all values."""
        return self._used

    def renew_lock(self) -> None:
        """Replace the lock after a fork, because a lost thread may hold it."""
        self._lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CacheKind(Generic[K, V]):
    """Content that sessions cache, declared once, by the module that reads it."""

    name: str
    most_bytes: int
    weight: Callable[[V], int]
    """Size of a value in bytes, about, when it is cached."""

    most_values: int | None = None
    """For values that hold more than memory, such as open files."""


MOST_BYTES = 1 << 30
"""Bound of all caches of a session together, unless it sets another one."""


class Caches:
    """The caches of a session.

    Each kind has a bound, and all together have one: when they reach it, the largest cache forgets
    what it has not used for longest. A cache is made when it is first used.
    """

    def __init__(
        self,
        *,
        most_bytes: int = MOST_BYTES,
        limits: Mapping[str, int] | None = None,
        shared: Caches | None = None,
    ) -> None:
        """Set the bound of all, and those of kinds, by name, that have another than by default.

        With `shared`, kinds without a limit are cached there.
        """
        self.most_bytes = most_bytes
        self._limits = dict(limits or {})
        self._shared = shared
        self._caches: dict[CacheKind[Any, Any], RecentlyUsed[Any, Any]] = {}

    def __getitem__(self, kind: CacheKind[K, V]) -> RecentlyUsed[K, V]:
        """Return the cache of a kind."""
        cache = self._caches.get(kind)
        return self._add(kind) if cache is None else cache

    def _add(self, kind: CacheKind[K, V]) -> RecentlyUsed[K, V]:
        if self._shared is not None and kind.name not in self._limits:
            return self._shared[kind]
        cache: RecentlyUsed[K, V] = RecentlyUsed(
            min(self._limits.get(kind.name, kind.most_bytes), self.most_bytes),
            weight=kind.weight,
            most_values=kind.most_values,
            grew=self._make_room,
        )
        # Two threads may be first; all use the cache of one.
        return self._caches.setdefault(kind, cache)

    def _make_room(self) -> None:
        while self.used > self.most_bytes:
            max(self._caches.values(), key=lambda cache: cache.used).forget_oldest()

    @property
    def used(self) -> int:
        """Bytes of all values that are cached here."""
        return sum(cache.used for cache in list(self._caches.values()))

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of the values that are cached here, by the name of their kind."""
        sizes = {kind.name: cache.used for kind, cache in list(self._caches.items())}
        return dict(sorted(sizes.items()))

    def clear(self) -> None:
        """Forget all values that are cached here."""
        for cache in list(self._caches.values()):
            cache.clear()

    def __repr__(self) -> str:
        sizes = "".join(f", {name}={size}" for name, size in self.sizes.items())
        return f"Caches(most_bytes={self.most_bytes}, used={self.used}{sizes})"


def cached_by_identity(size: int) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Cache the results of a function by the object given, whose comparison would be slow."""

    def decorate(compute: Callable[[K], V]) -> Callable[[K], V]:
        # The argument is kept, so that no other object gets its id.
        results: RecentlyUsed[int, tuple[K, V]] = RecentlyUsed(size)
        return lambda item: results.get(id(item), lambda: (item, compute(item)))[1]

    return decorate


_every_cache: weakref.WeakSet[RecentlyUsed[Any, Any]] = weakref.WeakSet()


@after_fork
def _renew_locks() -> None:
    for cache in _every_cache:
        cache.renew_lock()
