"""Run a function on the partitions of a DataFrame and collect the results on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from lancelake.engine import wire
from lancelake.errors import LanceTableError
from lancelake.spark.jobs.engine import described
from lancelake.spark.jvm.row_work import messages_of
from lancelake.spark.worker.task_messages import message_batch

Found = TypeVar("Found")


def on_partitions(
    frame: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Found],
    *,
    description: str,
) -> list[Found]:
    """Run a picklable function on each partition's batches and return the results.

    A partition may be processed more than once; one result per partition is returned. Our own
    errors are raised as they were raised on the executor.
    """
    with described(frame.sparkSession, description):
        messages = messages_of(frame, _Reporting(work))
    found: list[Found] = []
    for message in messages:
        failure, result = wire.loads(message)
        if failure is not None:
            raise LanceTableError.from_json(failure)
        found.append(result)
    return found


@dataclass(frozen=True, slots=True)
class _Reporting(Generic[Found]):
    work: Callable[[Iterator[pa.RecordBatch]], Found]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        outcome: tuple[str | None, Found | None]
        try:
            outcome = (None, self.work(iter(batches)))
        except LanceTableError as error:
            outcome = (error.to_json(), None)
        yield message_batch(wire.dumps(outcome))
