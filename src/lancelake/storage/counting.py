"""Store wrapper that counts calls and bytes, for I/O budgets."""

from __future__ import annotations

import builtins
import threading
from collections import Counter

from lancelake.storage.observed import ObservedStore
from lancelake.storage.store import ObjectStore


class CountingStore(ObservedStore):
    """Forwards every call and counts it."""

    def __init__(self, inner: ObjectStore) -> None:
        """Count the calls made to `inner` through this store."""
        super().__init__(inner)
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

    def _called(self, call: str, *paths: str) -> None:
        with self._lock:
            self.calls[call] += 1
            self.paths.extend((call, path) for path in paths)

    def _got(self, data: bytes) -> bytes:
        with self._lock:
            self.bytes_read += len(data)
        return data

    def _wrote(self, size_bytes: int) -> None:
        with self._lock:
            self.bytes_written += size_bytes
