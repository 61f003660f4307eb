"""I/O meters: the store calls and bytes of open tables."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from weakref import WeakValueDictionary

from lancelake.storage.location import Location
from lancelake.storage.observed import ObservedStore
from lancelake.storage.store import ObjectStore


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


class IoMeter:
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

    def add_reads(self, calls: int, size_bytes: int) -> None:
        """Count calls that read, and bytes."""
        with self._lock:
            self._reads += calls
            self._bytes_read += size_bytes

    def add_writes(self, calls: int, size_bytes: int) -> None:
        """Count calls that write, and bytes."""
        with self._lock:
            self._writes += calls
            self._bytes_written += size_bytes


_meters: WeakValueDictionary[str, IoMeter] = WeakValueDictionary()


def meter_of(location: Location) -> IoMeter:
    """Return the meter of a table, which all callers share."""
    return _meters.setdefault(location.uri, IoMeter())


def metered(location: Location, store: ObjectStore) -> ObjectStore:
    """Return the store of a table, metered if the table has a meter."""
    meter = _meters.get(location.uri)
    return store if meter is None else _MeteredStore(store, meter)


def count_written(location: Location, size_bytes: int) -> None:
    """Count a file that was written without the store."""
    meter = _meters.get(location.uri)
    if meter is not None:
        meter.add_writes(1, size_bytes)


_WRITES = frozenset({"put", "put_stream", "create", "swap", "copy", "delete", "delete_many"})


class _MeteredStore(ObservedStore):
    """Forwards every call and adds it to a meter."""

    def __init__(self, inner: ObjectStore, meter: IoMeter) -> None:
        super().__init__(inner)
        self._meter = meter

    def _called(self, call: str, *_paths: str) -> None:
        if call in _WRITES:
            self._meter.add_writes(1, 0)
        else:
            self._meter.add_reads(1, 0)

    def _got(self, data: bytes) -> bytes:
        self._meter.add_reads(0, len(data))
        return data

    def _wrote(self, size_bytes: int) -> None:
        self._meter.add_writes(0, size_bytes)
