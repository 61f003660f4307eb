"""An index built on executors: a BTREE range by range, other kinds by groups of fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.index.kind import BuildInput, BuiltSegment, Parameters
from lancelake.index.scalar.btree.build import WrittenPages
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.sort import row_schema
from lancelake.scan.count import live_rows
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.maintenance.range_keys import key_type, spark_keys, values_of_keys
from lancelake.spark.worker.on_executors import portable
from lancelake.table.index.build import SegmentBuild, built_here
from lancelake.table.index.parallel import BuiltByTasks, IndexFragments, fragment_groups
from lancelake.table.index.rows import column_rows

# To start a job and to send its tasks takes longer than to sort fewer rows where they are.
EMBEDDED_ROWS = 4_000_000
_RANGE_ROWS = 8_000_000
_KEY, _ID = "key", "id"
_ATTEMPTS = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class BuiltBySpark:
    """Builds a segment on executors if it is large, else on the driver."""

    spark: SparkSession

    def __call__(self, build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        """Write the files of a segment."""
        rows = _rows(build)
        if rows < EMBEDDED_ROWS:
            return built_here(build, folder)
        engine = SparkEngine(self.spark)
        if build.target.kind is BTREE and key_type(build.target.dtype) is not None:
            count = max(engine.parallelism, -(-rows // _RANGE_ROWS))
            return _by_ranges(self.spark, build, folder, count)
        return BuiltByTasks(engine)(build, folder)


def _rows(build: SegmentBuild) -> int:
    base = build.base
    chosen = (fr for fr in base.manifest.fragments if fr.id in build.fragments)
    return sum(live_rows(base.files, base.manifest_at, fragment) for fragment in chosen)


def _by_ranges(
    spark: SparkSession, build: SegmentBuild, folder: SegmentFolder, count: int
) -> BuiltSegment:
    """Let Spark send each range of values to one task, which writes it; rows pass no driver."""
    key = f.col(_KEY).asc_nulls_first()
    rows = _keyed_rows(spark, build).repartitionByRange(count, key).sortWithinPartitions(key)
    work = _WriteRange(folder, build.target.dtype, dict(build.parameters))
    description = f"index {build.target.path} of {build.base.location.uri}"
    found = on_partitions(rows, work, description=description)
    ranges = [pages for _, pages in sorted(found, key=lambda item: item[0])]
    return BTREE.finish_ranges(ranges, build.target.dtype, build.parameters, folder)


def _keyed_rows(spark: SparkSession, build: SegmentBuild) -> DataFrame:
    groups = fragment_groups(build, SparkEngine(spark).parallelism)
    read = _ReadKeys([IndexFragments.of(build, group) for group in groups])
    schema = t.StructType(
        [
            t.StructField(_KEY, key_type(build.target.dtype) or t.BinaryType()),
            t.StructField(_ID, t.LongType()),
        ]
    )
    numbers = spark.range(0, len(groups), 1, max(1, len(groups)))
    return numbers.mapInArrow(portable(read), schema)


@dataclass(frozen=True, slots=True)
class _ReadKeys:
    """Reads the column of groups of fragments."""

    groups: list[IndexFragments]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                build = self.groups[number].build()
                rows = column_rows(build.base, build.target, build.fragments, build.stored)
                for part in rows:
                    ids = part.column(1).view(pa.int64())
                    columns = [spark_keys(part.column(0)), ids]
                    yield pa.RecordBatch.from_arrays(columns, names=[_KEY, _ID])


@dataclass(frozen=True, slots=True)
class _WriteRange:
    """Writes the rows of a partition, which come in value order, as one range."""

    folder: SegmentFolder
    dtype: pa.DataType
    parameters: Parameters

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, WrittenPages]:
        task = TaskContext.get()
        assert task is not None  # on an executor
        rows = BuildInput(dtype=self.dtype, batches=self._rows(batches), parameters=self.parameters)
        # Two attempts may run at once: each has a file of its own.
        attempt = task.taskAttemptId() & _ATTEMPTS
        place = task.partitionId()
        return place, BTREE.build_range(rows, place, self.folder, attempt=attempt)

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = row_schema(self.dtype)
        for batch in batches:
            values = values_of_keys(batch.column(0), self.dtype)
            ids = batch.column(1).view(pa.uint64())
            yield pa.RecordBatch.from_arrays([values, ids], schema=schema)
