"""Counts of a writer: calls, WAL entries and flushes, and their time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from lancelake.clock import Clock


@dataclass(slots=True, kw_only=True)
class WriterCounts:
    """Totals since the writer was opened."""

    puts: int = 0
    put_s: float = 0.0
    entries: int = 0
    entry_bytes: int = 0
    entry_s: float = 0.0
    flushes: int = 0
    flushed_rows: int = 0
    flush_s: float = 0.0


class WriterMeter:
    """Counts of a writer that several threads share."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts = WriterCounts()

    def counts(self) -> WriterCounts:
        """Return the totals so far."""
        with self._lock:
            return WriterCounts(
                **{f.name: getattr(self._counts, f.name) for f in fields(self._counts)}
            )

    @contextmanager
    def put(self) -> Iterator[None]:
        """Count a call that succeeds, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.puts += 1
            self._counts.put_s += self._clock.monotonic_s() - start

    @contextmanager
    def entry(self, nbytes: int) -> Iterator[None]:
        """Count a WAL entry that is written, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.entries += 1
            self._counts.entry_bytes += nbytes
            self._counts.entry_s += self._clock.monotonic_s() - start

    @contextmanager
    def flush(self, rows: int) -> Iterator[None]:
        """Count a flush that succeeds, and its time."""
        start = self._clock.monotonic_s()
        yield
        with self._lock:
            self._counts.flushes += 1
            self._counts.flushed_rows += rows
            self._counts.flush_s += self._clock.monotonic_s() - start
