"""I/O account of an operation: the store calls and the column reads made on its behalf."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from lancelake.storage.counting import CountingStore
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import FileAt


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRead:
    """Rows of some columns that the codec was asked to read from a file."""

    place: FileAt
    columns: tuple[str, ...] | None
    """Names by which the codec knows the columns; None for all."""
    rows: range | Sequence[int]

    @property
    def num_rows(self) -> int:
        """Number of rows read."""
        return len(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferRead:
    """A global buffer that the codec was asked to read from a file."""

    place: FileAt
    size_bytes: int


class IoAccount:
    """Counts the I/O of one operation; threads that work for it share the account.

    Code under `active` is accounted, as is what it starts with a copy of its context.
    """

    def __init__(self) -> None:
        self._stores: list[CountingStore] = []
        self._lock = threading.Lock()
        self.reads: list[ColumnRead] = []
        self.buffers: list[BufferRead] = []
        self.counts: Counter[str] = Counter()
        """Other events, by name."""

    @property
    def store_requests(self) -> int:
        """Number of store calls."""
        return sum(store.total for store in self._stores)

    @property
    def store_bytes_read(self) -> int:
        """Bytes that stores returned."""
        return sum(store.bytes_read for store in self._stores)

    @property
    def requests(self) -> int:
        """Number of store calls and of reads by the codec."""
        return self.store_requests + len(self.reads) + len(self.buffers)

    @property
    def rows_read(self) -> int:
        """Number of rows that the codec was asked for, in all files together."""
        return sum(read.num_rows for read in self.reads)

    def counted(self, store: ObjectStore) -> ObjectStore:
        """Return the store with its calls counted."""
        counting = CountingStore(store)
        with self._lock:
            self._stores.append(counting)
        return counting

    def add(self, read: ColumnRead | BufferRead) -> None:
        """Add a read of the codec."""
        with self._lock:
            if isinstance(read, ColumnRead):
                self.reads.append(read)
            else:
                self.buffers.append(read)

    def count(self, event: str, times: int = 1) -> None:
        """Count an event."""
        with self._lock:
            self.counts[event] += times

    @contextmanager
    def active(self) -> Iterator[None]:
        """Account the I/O of the block to this account."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[IoAccount | None] = ContextVar("io_account", default=None)


def current_account() -> IoAccount | None:
    """Return the account of the running operation, if it has one."""
    return _current.get()
