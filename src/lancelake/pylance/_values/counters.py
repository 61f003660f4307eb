"""Counters of the reads of data files in this process, as in pylance."""

from __future__ import annotations

from lancelake.data.codec import official


def bytes_read_counter() -> int:
    """Return the number of bytes of data files that were read since the process started."""
    return official.counter("bytes_read_counter")


def iops_counter() -> int:
    """Return the number of reads of data files since the process started."""
    return official.counter("iops_counter")
