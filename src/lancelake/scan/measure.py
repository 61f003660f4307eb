"""Measurement of a scan: rows, bytes, requests and time of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from lancelake.clock import Clock, SystemClock
from lancelake.data.codec.read_sizes import ReadSize, bytes_read
from lancelake.format.computed_once import computed_once
from lancelake.storage.io_account import IoAccount

_T = TypeVar("_T")
_Found = TypeVar("_Found", bound=Sized)


@dataclass(slots=True)
class StepCounts:
    """Batches that a step returned, and the time that it took with the steps below it."""

    rows: int = 0
    size_bytes: int = 0
    batches: int = 0
    elapsed_s: float = 0.0

    def __str__(self) -> str:
        """Format as metrics of a plan."""
        return (
            f"rows={self.rows}, bytes={self.size_bytes}, batches={self.batches}, "
            f"elapsed_ms={self.elapsed_s * 1000:.3f}"
        )


@dataclass(frozen=True)
class StepIo:
    """I/O of a step."""

    account: IoAccount = field(default_factory=IoAccount)

    @computed_once
    def size(self) -> ReadSize:
        """Bytes read; the first call opens the files that were read once more."""
        return bytes_read(self.account)

    def __str__(self) -> str:
        """Format as metrics of a plan."""
        account = self.account
        return (
            f"rows_scanned={account.rows_read}, bytes_read={self.size}, iops={account.requests}, "
            f"requests={account.requests}, store_requests={account.store_requests}"
        )


class ScanMeasure:
    """Counts of one scan: give it the steps to run, then read the counts."""

    def __init__(self, clock: Clock | None = None) -> None:
        """Start with all counts at zero."""
        self._clock = clock or SystemClock()
        self.planning = StepCounts()
        self.planning_io = StepIo()
        self.scan = StepCounts()
        self.scan_io = StepIo()
        self.output = StepCounts()
        self.is_count = False

    def another_run(self) -> ScanMeasure:
        """Return the counts of planning, for another run of the same plan."""
        other = ScanMeasure(self._clock)
        other.planning, other.planning_io = self.planning, self.planning_io
        return other

    def planned(self, make: Callable[[], _T]) -> _T:
        """Plan a scan; indices are searched as part of it."""
        started = self._clock.monotonic_s()
        with self.planning_io.account.active():
            plan = make()
        self.planning.elapsed_s += self._clock.monotonic_s() - started
        return plan

    def scanned(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the scan step."""
        return self._counted(batches, self.scan, self.scan_io.account)

    def searched(self, find: Callable[[], _Found]) -> _Found:
        """Search for rows, as the scan step."""
        started = self._clock.monotonic_s()
        with self.scan_io.account.active():
            found = find()
        self.scan.elapsed_s += self._clock.monotonic_s() - started
        self.scan.rows += len(found)
        return found

    def returned(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the last step."""
        return self._counted(batches, self.output, None)

    def counted(self, count: Callable[[], int]) -> int:
        """Count the rows of a scan."""
        started = self._clock.monotonic_s()
        with self.scan_io.account.active():
            rows = count()
        self.is_count = True
        for step in (self.scan, self.output):
            step.elapsed_s += self._clock.monotonic_s() - started
            step.rows += rows
        return rows

    def _counted(
        self, batches: Iterator[pa.RecordBatch], step: StepCounts, account: IoAccount | None
    ) -> Iterator[pa.RecordBatch]:
        while True:
            started = self._clock.monotonic_s()
            batch = _next(batches, account)
            step.elapsed_s += self._clock.monotonic_s() - started
            if batch is None:
                return
            step.rows += batch.num_rows
            step.size_bytes += batch.nbytes
            step.batches += 1
            yield batch


def _next(batches: Iterator[pa.RecordBatch], account: IoAccount | None) -> pa.RecordBatch | None:
    if account is None:
        return next(batches, None)
    with account.active():
        return next(batches, None)
