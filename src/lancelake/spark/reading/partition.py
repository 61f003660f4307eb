"""Input of one Spark partition: a picklable value, and the batches it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lancelake.engine import wire
from lancelake.scan.execute import count, execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.reduce.aggregate import PartialAggregation
from lancelake.scan.reduce.top_rows import TopRows
from lancelake.scan.scan_columns import ScanColumns
from lancelake.spark.reading.metadata_columns import with_fragment_id
from lancelake.spark.reading.spark_values import SparkConformer


class TravelingPartition(Protocol):
    """A value that is planned on the driver and read on an executor."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPartition:
    """Tasks of a scan, and the operations on their rows before Spark receives them."""

    tasks: tuple[ScanTask, ...]
    schema: pa.Schema
    limit: int | None = None
    top: TopRows | None = None
    aggregation: PartialAggregation | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the Arrow types that Spark expects."""
        rows: Iterator[pa.RecordBatch] = self._rows()
        if self.aggregation is not None and self.aggregation.counts_only:
            rows = iter([self.aggregation.counted(sum(count(task) for task in self.tasks))])
        elif self.aggregation is not None:
            rows = self.aggregation.run(rows)
        elif self.top is not None:
            rows = self.top.run(rows)
        conform = SparkConformer(self.schema)
        yield from (conform(batch) for batch in _first(rows, self.limit))

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if not self.tasks:
            return
        columns = ScanColumns.of(self.tasks[0].spec)
        for task in self.tasks:
            for batch in execute(task, columns):
                yield with_fragment_id(batch, self.schema, task.fragment.id)


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if not left:
            return


def encode(partition: TravelingPartition) -> bytes:
    """Encode a partition as bytes."""
    return wire.dumps(partition)


def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the partition whose bytes are the only value of the only batch."""
    for batch in batches:
        yield from read_bytes(batch.column(0)[0].as_py())


def read_bytes(data: bytes) -> Iterator[pa.RecordBatch]:
    """Read the partition that `encode` encoded on the driver."""
    partition: TravelingPartition = wire.loads(data)
    yield from partition.batches()
