"""Write batches on an executor, and return the encoded fragments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lancelake.data.write_task import WriteTask
from lancelake.spark.worker.fragment_messages import sealed_fragments
from lancelake.spark.worker.task_messages import message_batch
from lancelake.spark.writing.frame_writer import written


@dataclass(frozen=True, slots=True)
class WriteBatches:
    """Writes the rows of one task and returns its fragments."""

    task: WriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one batch with one message."""
        yield message_batch(sealed_fragments(written(self.task, iter(batches))))
