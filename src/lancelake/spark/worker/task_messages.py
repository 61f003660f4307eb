"""Messages of tasks: bytes that only the driver decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

MESSAGE = "message"

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Processes the rows of a partition on a worker, and returns messages."""


def message_batch(message: bytes) -> pa.RecordBatch:
    """Return the batch with one message."""
    return pa.record_batch([pa.array([message], pa.binary())], names=[MESSAGE])
