"""Write a DataFrame to data files on the executors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from lancelake.clock import SystemIds
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.write_task import WriteTask
from lancelake.errors import LanceTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_bytes import from_bytes, to_bytes
from lancelake.spark.jobs.partition_job import on_partitions


@dataclass(frozen=True, slots=True)
class WriteRows:
    """Writes the rows of a partition; an empty one creates no file."""

    task: WriteTask

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        """Write the rows and return their fragments."""
        return to_bytes(written(self.task, batches))


def written(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> tuple[Fragment, ...]:
    """Write batches and return their fragments."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return ()
    every = itertools.chain([first], batches)
    reader = pa.RecordBatchReader.from_batches(first.schema, every)
    try:
        return write_fragments(task, reader, ids=SystemIds())
    except LanceTableError as error:
        raise error.at(task.root.uri) from error.__cause__


def write_frame(frame: DataFrame, task: WriteTask) -> tuple[Fragment, ...]:
    """Write a DataFrame on the executors and return its uncommitted fragments."""
    results = on_partitions(frame, WriteRows(task), description=f"write rows to {task.root.uri}")
    return tuple(fragment for result in results for fragment in from_bytes(result))
