"""An index built on executors: a BTREE range by range, other kinds by groups of fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.clock import SystemIds
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import RetryableConflictError
from lancelake.index.kind import BuildInput, BuiltSegment, Parameters
from lancelake.index.scalar.btree.build import WrittenPages
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.sort import row_schema
from lancelake.scan.count import live_rows
from lancelake.spark.jobs.engine import SparkEngine
from lancelake.spark.jobs.partition_job import on_partitions
from lancelake.spark.maintenance.index_ranges import RangePlan, Ranges, write_written
from lancelake.spark.maintenance.range_keys import key_type, spark_keys, values_of_keys
from lancelake.spark.worker.on_executors import portable
from lancelake.table.index.build import SegmentBuild, built_here
from lancelake.table.index.build_record import BuildRecord
from lancelake.table.index.parallel import BuiltByTasks, IndexFragments, fragment_groups
from lancelake.table.index.rows import column_rows

# To start a job and to send its tasks takes longer than to sort fewer rows where they are.
EMBEDDED_ROWS = 4_000_000
_RANGE_ROWS = 8_000_000
_SAMPLED_PER_RANGE = 2_000
_RANGE, _KEY, _ID = "range", "key", "id"
_ATTEMPTS = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class BuiltBySpark:
    """Builds a segment on executors if it is large, else on the driver.

    Ranges and parts that an earlier attempt finished are not built again.
    """

    spark: SparkSession

    def __call__(self, build: SegmentBuild, folder: SegmentFolder) -> BuiltSegment:
        """Write the files of a segment."""
        rows = _rows(build)
        if rows < EMBEDDED_ROWS:
            return built_here(build, folder)
        engine = SparkEngine(self.spark)
        if _has_ranges(build):
            count = max(engine.parallelism, -(-rows // _RANGE_ROWS))
            return _RangeBuild(self.spark, build, folder).built(rows, count)
        return BuiltByTasks(engine)(build, folder)

    def begun(self, build: SegmentBuild) -> UUID | None:
        """Return the folder in which an earlier attempt has written ranges of the same segment."""
        if not _has_ranges(build) or _rows(build) < EMBEDDED_ROWS:
            return None
        plan = RangePlan.begun(build)
        return None if plan is None else plan.segment.unique


def _has_ranges(build: SegmentBuild) -> bool:
    return build.target.kind is BTREE and key_type(build.target.dtype) is not None


def _rows(build: SegmentBuild) -> int:
    base = build.base
    chosen = (fr for fr in base.manifest.fragments if fr.id in build.fragments)
    return sum(live_rows(base.files, base.manifest_at, fragment) for fragment in chosen)


@dataclass(frozen=True, slots=True)
class _RangeBuild:
    """Lets Spark send each range of values to one task, which writes it; rows pass no driver."""

    spark: SparkSession
    build: SegmentBuild
    folder: SegmentFolder

    def built(self, rows: int, count: int) -> BuiltSegment:
        build, dtype = self.build, self.build.target.dtype
        unique = UUID(self.folder.place.path.rsplit("/", 1)[-1])
        plan = RangePlan.begun(build)
        if plan is None or plan.segment.unique != unique:
            every = max(1, rows // (count * _SAMPLED_PER_RANGE))
            plan = RangePlan.begin(build, unique, Ranges.of(self._sample(every), count))
        known = plan.written()
        missing = [place for place in range(len(plan.ranges.bounds) + 1) if place not in known]
        known |= self._written(plan, missing)
        if not plan.finish():
            problem = "another writer has completed the same index build"
            raise RetryableConflictError(problem, table=build.base.location.uri)
        ranges = [known[place] for place in sorted(known)]
        made = BTREE.finish_ranges(ranges, dtype, build.parameters, self.folder)
        plan.segment.remove_others(made.files)
        return made

    def _sample(self, every: int) -> pa.Array:
        """Return some of the keys, in no order."""
        keys = self._read(_ReadKeys(self._parts(), every=every), [_KEY]).toArrow().column(0)
        return pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], keys.type)

    def _written(self, plan: RangePlan, missing: list[int]) -> dict[int, WrittenPages]:
        """Write ranges; those without rows are left out."""
        if not missing:
            return {}
        read = _ReadKeys(self._parts(), ranges=plan.ranges, wanted=tuple(missing))
        rows = self._read(read, [_RANGE, _KEY, _ID]).repartitionById(len(missing), _RANGE)
        rows = rows.sortWithinPartitions(_KEY, ascending=True)
        build = self.build
        work = _WriteRange(
            segment=plan.segment,
            folder=self.folder,
            places=tuple(missing),
            dtype=build.target.dtype,
            parameters=dict(build.parameters),
        )
        description = f"index {build.target.path} of {build.base.location.uri}"
        found = on_partitions(rows, work, description=description)
        return dict(each for each in found if each is not None)

    def _parts(self) -> list[IndexFragments]:
        groups = fragment_groups(self.build, SparkEngine(self.spark).parallelism)
        return [IndexFragments.of(self.build, group) for group in groups]

    def _read(self, read: _ReadKeys, names: list[str]) -> DataFrame:
        types = {
            _RANGE: t.IntegerType(),
            _KEY: key_type(self.build.target.dtype) or t.BinaryType(),
            _ID: t.LongType(),
        }
        schema = t.StructType([t.StructField(name, types[name]) for name in names])
        count = len(read.groups)
        return self.spark.range(0, count, 1, max(1, count)).mapInArrow(portable(read), schema)


@dataclass(frozen=True, slots=True)
class _ReadKeys:
    """Reads the column of groups of fragments: a sample of keys, or rows of wanted ranges."""

    groups: list[IndexFragments]
    every: int = 1
    ranges: Ranges | None = None
    wanted: tuple[int, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                build = self.groups[number].build()
                rows = column_rows(build.base, build.target, build.fragments, build.stored)
                yield from map(self._of_ranges, rows) if self.ranges else self._sampled(rows)

    def _sampled(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = 0
        for part in rows:
            places = pa.array(range(start, part.num_rows, self.every), pa.int64())
            start = (start - part.num_rows) % self.every
            keys = spark_keys(part.column(0).take(places))
            yield pa.RecordBatch.from_arrays([keys], names=[_KEY])

    def _of_ranges(self, part: pa.RecordBatch) -> pa.RecordBatch:
        assert self.ranges is not None
        keys = spark_keys(part.column(0))
        order, numbers = self.ranges.sorted(keys)
        # The range of a row becomes the position of the range among those that are wanted.
        positions = np.full(len(self.ranges.bounds) + 1, -1, np.int32)
        positions[list(self.wanted)] = np.arange(len(self.wanted), dtype=np.int32)
        chosen = positions[numbers]
        ids = part.column(1).view(pa.int64())
        columns = [pa.array(chosen), keys.take(order), ids.take(order)]
        found = pa.RecordBatch.from_arrays(columns, names=[_RANGE, _KEY, _ID])
        return found if (chosen >= 0).all() else found.filter(pa.array(chosen >= 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _WriteRange:
    """Writes the rows of a partition, which come in value order, as one range."""

    segment: BuildRecord
    folder: SegmentFolder
    places: tuple[int, ...]
    dtype: pa.DataType
    parameters: Parameters

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> tuple[int, WrittenPages] | None:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return None
        place = self.places[first.column(0)[0].as_py()]
        found = self._rows(chain([first], batches))
        rows = BuildInput(dtype=self.dtype, batches=found, parameters=self.parameters)
        # Two attempts may run at once: each has a file of its own.
        attempt = SystemIds().uuid4().int & _ATTEMPTS
        pages = BTREE.build_range(rows, place, self.folder, attempt=attempt)
        write_written(self.segment, place, pages)
        return place, pages

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = row_schema(self.dtype)
        for batch in batches:
            values = values_of_keys(batch.column(1), self.dtype)
            ids = batch.column(2).view(pa.uint64())
            yield pa.RecordBatch.from_arrays([values, ids], schema=schema)
