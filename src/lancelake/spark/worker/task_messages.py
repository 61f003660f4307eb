"""What does a task of ours answer with? Messages: bytes that only the driver understands."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

MESSAGE = "message"

Work = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a worker does with the rows of a partition; it answers with messages."""


def message_batch(message: bytes) -> pa.RecordBatch:
    """Return the batch that carries one message."""
    return pa.record_batch([pa.array([message], pa.binary())], names=[MESSAGE])
