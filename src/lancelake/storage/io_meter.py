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

    def __add__(self, other: IoCounts) -> IoCounts:
        """Return the sums."""
        return IoCounts(
            reads=self.reads + other.reads,
            bytes_read=self.bytes_read + other.bytes_read,
            writes=self.writes + other.writes,
            bytes_written=self.bytes_written + other.bytes_written,
        )

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
        self._counts = IoCounts()
        self._lock = threading.Lock()

    @property
    def counts(self) -> IoCounts:
        """What was counted so far."""
        return self._counts

    def add(self, counts: IoCounts) -> None:
        """Count calls and bytes."""
        with self._lock:
            self._counts += counts


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
        meter.add(IoCounts(writes=1, bytes_written=size_bytes))


_WRITES = frozenset({"put", "put_stream", "create", "swap", "copy", "delete", "delete_many"})
_READ = IoCounts(reads=1)
_WRITTEN = IoCounts(writes=1)


class _MeteredStore(ObservedStore):
    """Forwards every call and adds it to a meter."""

    def __init__(self, inner: ObjectStore, meter: IoMeter) -> None:
        super().__init__(inner)
        self._meter = meter

    def _called(self, call: str, *_paths: str) -> None:
        self._meter.add(_WRITTEN if call in _WRITES else _READ)

    def _got(self, data: bytes) -> bytes:
        self._meter.add(IoCounts(bytes_read=len(data)))
        return data

    def _wrote(self, size_bytes: int) -> None:
        self._meter.add(IoCounts(bytes_written=size_bytes))
