"""Stores that count, time and record their calls."""

from __future__ import annotations

import builtins
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakValueDictionary

from lancelake import events
from lancelake.format import layout
from lancelake.storage.store import ObjectInfo, ObjectStore, StoredFile, StorePlace


class StoreObserver:
    """Is notified of the calls of stores; by itself it ignores them."""

    def called(self, call: str, paths: Sequence[str]) -> None:
        """Record a call that is about to be made."""

    def got(self, size_bytes: int) -> None:
        """Record bytes that were read."""

    def wrote(self, size_bytes: int) -> None:
        """Record bytes that were written."""


class ObservedStore:
    """Forwards every call and reports it to observers."""

    def __init__(self, inner: ObjectStore, observers: Sequence[StoreObserver]) -> None:
        """Report the calls made to `inner` through this store."""
        self._inner = inner
        self._observers = tuple(observers)

    def _called(self, call: str, *paths: str) -> None:
        for observer in self._observers:
            observer.called(call, paths)

    def _got(self, data: bytes) -> bytes:
        for observer in self._observers:
            observer.got(len(data))
        return data

    def _wrote(self, size_bytes: int) -> None:
        for observer in self._observers:
            observer.wrote(size_bytes)

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


_KINDS: Mapping[str, str] = {
    layout.VERSIONS: "manifest",
    layout.DELETIONS: "deletion",
    layout.INDICES: "index",
    layout.DATA: "data",
}
_MODES: Mapping[str, str] = {
    "put": "create",
    "put_stream": "create",
    "create": "create",
    "delete": "delete",
    "delete_many": "delete",
}


def observers_of(location: StorePlace) -> list[StoreObserver]:
    """Return who is to be notified of calls of the store at a location."""
    observers: list[StoreObserver] = []
    meter = _meters.get(location.uri)
    if meter is not None:
        observers.append(meter)
    if events.are_heard():
        observers.append(_Audit(location))
    account = current_account()
    if account is not None:
        observers.append(account.calls)
    return observers


def report_created(location: StorePlace, path: str) -> None:
    """Report a file that was written without the store."""
    _report("create", location, path)


def _report(mode: str, location: StorePlace, path: str) -> None:
    kind = _KINDS.get(path.partition("/")[0])
    if kind is not None:
        events.emit(events.FILES, mode=mode, type=kind, path=path, uri=location.uri)


class _Audit(StoreObserver):
    """Reports the files that are created or deleted."""

    def __init__(self, location: StorePlace) -> None:
        self._location = location

    def called(self, call: str, paths: Sequence[str]) -> None:
        mode = _MODES.get(call)
        if mode is not None:
            for path in paths:
                _report(mode, self._location, path)


class StoreCalls(StoreObserver):
    """Counts the calls of stores, and the bytes that they moved."""

    def __init__(self) -> None:
        """Start at zero."""
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

    def called(self, call: str, paths: Sequence[str]) -> None:
        """Count a call."""
        with self._lock:
            self.calls[call] += 1
            self.paths.extend((call, path) for path in paths)

    def got(self, size_bytes: int) -> None:
        """Count bytes that were read."""
        with self._lock:
            self.bytes_read += size_bytes

    def wrote(self, size_bytes: int) -> None:
        """Count bytes that were written."""
        with self._lock:
            self.bytes_written += size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRead:
    """Rows of some columns that the codec was asked to read from a file."""

    place: StoredFile
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

    place: StoredFile
    size_bytes: int


class IoAccount:
    """Counts the I/O of one operation; threads that work for it share the account.

    Code under `active` is accounted, as is what it starts with a copy of its context.
    """

    def __init__(self) -> None:
        self.calls = StoreCalls()
        """Calls of all stores."""

        self._lock = threading.Lock()
        self.reads: list[ColumnRead] = []
        self.buffers: list[BufferRead] = []
        self.counts: Counter[str] = Counter()
        """Other events, by name."""

    @property
    def store_requests(self) -> int:
        """Number of store calls."""
        return self.calls.total

    @property
    def store_bytes_read(self) -> int:
        """Bytes that stores returned."""
        return self.calls.bytes_read

    @property
    def requests(self) -> int:
        """Number of store calls and of reads by the codec."""
        return self.store_requests + len(self.reads) + len(self.buffers)

    @property
    def rows_read(self) -> int:
        """Number of rows that the codec was asked for, in all files together."""
        return sum(read.num_rows for read in self.reads)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IoCounts:
    """Numbers of calls and bytes."""

    reads: int = 0
    bytes_read: int = 0
    writes: int = 0
    bytes_written: int = 0

    def __sub__(self, other: IoCounts) -> IoCounts:
        """Return what was added since."""
        return IoCounts(
            reads=self.reads - other.reads,
            bytes_read=self.bytes_read - other.bytes_read,
            writes=self.writes - other.writes,
            bytes_written=self.bytes_written - other.bytes_written,
        )


class IoMeter(StoreObserver):
    """Counts the I/O of one table in this process while anyone holds the meter."""

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = threading.Lock()
        self._reads = 0
        self._bytes_read = 0
        self._writes = 0
        self._bytes_written = 0

    @property
    def counts(self) -> IoCounts:
        """What was counted so far."""
        with self._lock:
            return IoCounts(
                reads=self._reads,
                bytes_read=self._bytes_read,
                writes=self._writes,
                bytes_written=self._bytes_written,
            )

    def called(self, call: str, paths: Sequence[str]) -> None:  # noqa: ARG002  # counted by call
        """Count a call."""
        with self._lock:
            if call in _WRITES:
                self._writes += 1
            else:
                self._reads += 1

    def got(self, size_bytes: int) -> None:
        """Count bytes that were read."""
        with self._lock:
            self._bytes_read += size_bytes

    def wrote(self, size_bytes: int) -> None:
        """Count bytes that were written."""
        with self._lock:
            self._bytes_written += size_bytes

    def wrote_file(self, size_bytes: int) -> None:
        """Count a file that was written without a store."""
        with self._lock:
            self._writes += 1
            self._bytes_written += size_bytes


_meters: WeakValueDictionary[str, IoMeter] = WeakValueDictionary()


def meter_of(location: StorePlace) -> IoMeter:
    """Return the meter of a table, which all callers share."""
    return _meters.setdefault(location.uri, IoMeter())


def count_written(location: StorePlace, size_bytes: int) -> None:
    """Count a file that was written without the store."""
    meter = _meters.get(location.uri)
    if meter is not None:
        meter.wrote_file(size_bytes)


_WRITES = frozenset({"put", "put_stream", "create", "swap", "copy", "delete", "delete_many"})
