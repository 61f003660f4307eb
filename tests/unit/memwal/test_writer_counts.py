from __future__ import annotations

import pytest

from lancelake.memwal.writer import WriterCounts, WriterMeter
from tests.support.set_clock import ManualClock


def test_calls_entries_and_flushes_are_counted_with_their_time() -> None:
    clock = ManualClock()
    meter = WriterMeter(clock)
    with meter.put():
        clock.sleep(1)
        with meter.entry(10):
            clock.sleep(2)
    with meter.flush(5):
        clock.sleep(4)
    assert meter.counts() == WriterCounts(
        puts=1, put_s=3, entries=1, entry_bytes=10, entry_s=2, flushes=1, flushed_rows=5, flush_s=4
    )


def test_failures_are_not_counted() -> None:
    meter = WriterMeter(ManualClock())
    with pytest.raises(ValueError), meter.put():
        raise ValueError
    assert meter.counts() == WriterCounts()
