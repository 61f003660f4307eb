"""Building indices on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from lancelake.core.values.indices import (
    BTREE,
    BuildInput,
    BuildRecord,
    BuiltByTasks,
    BuiltSegment,
    IndexFragments,
    Parameters,
    SegmentBuild,
    SegmentFolder,
    WrittenPages,
    build_name,
    built_here,
    column_rows,
    fragment_groups,
    key_array,
    keys_of,
    row_schema,
    values_of,
)
from lancelake.core.values.metadata import IndexFile, default_session
from lancelake.core.values.tasks import live_rows
from lancelake.errors import RetryableConflictError
from lancelake.spark.jobs.engine import SparkEngine, on_partitions
from lancelake.spark.tasks.on_executors import portable

_PLAN = "ranges"
_SEGMENT, _NUMBER, _FILE, _SIZE = b"segment", b"number", b"file", b"size"
_WRITTEN = "range_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Bounds of ranges of Spark keys: each is the least key of the next range."""

    bounds: pa.Array

    @staticmethod
    def of(sample: pa.Array, count: int) -> Ranges:
        """Choose bounds for ranges of about as many keys, by a sample of them."""
        keys = sample.drop_null()
        ordered = keys.take(pc.sort_indices(keys))
        places = np.arange(1, count) * len(ordered) // count
        return Ranges(bounds=ordered.take(pa.array(places[: len(ordered)])).unique())

    def sort(self, keys: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Return the order of keys, and the range of each in this order; nulls are in the first."""
        order, present = pc.sort_indices(keys), len(keys) - keys.null_count
        order = pa.concat_arrays([order[present:], order[:present]])
        ordered = keys.take(order)
        starts = [_first(ordered, bound, ordered.null_count) for bound in self.bounds]
        numbers = np.zeros(len(keys), dtype=np.int32)
        np.add.at(numbers, [start for start in starts if start < len(keys)], 1)
        return order, np.cumsum(numbers, dtype=np.int32)


def _first(ordered: pa.Array, bound: pa.Scalar, nulls: int) -> int:
    """Return the position of the first key that is not less than a bound."""
    low, high, wanted = nulls, len(ordered), bound.as_py()
    while low < high:
        middle = (low + high) // 2
        if ordered[middle].as_py() < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class RangePlan:
    """The ranges of a segment, and the folder in which they are written."""

    record: BuildRecord
    segment: BuildRecord
    ranges: Ranges

    @staticmethod
    def resume(build: SegmentBuild) -> RangePlan | None:
        """Return the plan of an earlier attempt that was not completed."""
        record = _record(build)
        data = record.read(_PLAN)
        if data is None:
            return None
        bounds_table = pa.ipc.open_stream(data).read_all()
        unique = UUID((bounds_table.schema.metadata or {})[_SEGMENT].decode())
        segment = BuildRecord(location=record.location, unique=unique)
        if segment.is_claimed:
            return None
        bounds = bounds_table.column(0).combine_chunks()
        return RangePlan(record=record, segment=segment, ranges=Ranges(bounds=bounds))

    @staticmethod
    def begin(build: SegmentBuild, unique: UUID, ranges: Ranges) -> RangePlan:
        """Record a plan before its ranges are written."""
        record = _record(build)
        metadata = {_SEGMENT: str(unique).encode()}
        record.write(_PLAN, _stream({"bounds": ranges.bounds}, metadata))
        segment = BuildRecord(location=record.location, unique=unique)
        return RangePlan(record=record, segment=segment, ranges=ranges)

    def read_pages(self) -> dict[int, WrittenPages]:
        """Return the ranges of which an earlier attempt has written all rows."""
        places = [
            int(name.removeprefix(_WRITTEN))
            for name in self.segment.names()
            if name.startswith(_WRITTEN)
        ]
        ranges = {place: read_pages(self.segment, place) for place in sorted(places)}
        return {place: pages for place, pages in ranges.items() if pages is not None}

    def finish(self) -> bool:
        """Reserve the folder; False if another attempt has completed the segment."""
        if not self.segment.claim():
            return False
        self.record.remove([_PLAN])
        return True


def record_pages(segment: BuildRecord, place: int, pages: WrittenPages) -> None:
    """Record that the file of a range is complete."""
    assert pages.file is not None  # a range is written for its rows
    metadata = {
        _NUMBER: str(pages.number).encode(),
        _FILE: pages.file.path.encode(),
        _SIZE: str(pages.file.size_bytes).encode(),
    }
    columns = {"min": pages.min, "max": pages.max, "null_count": pages.null_count}
    segment.write(f"{_WRITTEN}{place}", _stream(columns, metadata))


def read_pages(segment: BuildRecord, place: int) -> WrittenPages | None:
    """Return a range whose file is complete; None if it is not."""
    data = segment.read(f"{_WRITTEN}{place}")
    if data is None:
        return None
    table = pa.ipc.open_stream(data).read_all().combine_chunks()
    facts = table.schema.metadata or {}
    file = IndexFile(path=facts[_FILE].decode(), size_bytes=int(facts[_SIZE]))
    if not segment.has([file]):
        return None
    low, high, nulls = (_whole(column) for column in table.columns)
    return WrittenPages(number=int(facts[_NUMBER]), file=file, min=low, max=high, null_count=nulls)


def _record(build: SegmentBuild) -> BuildRecord:
    base = build.base
    name = build_name(base, build.target, build.fragments, build.stored, build.parameters)
    return BuildRecord(location=base.location, unique=name)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _stream(columns: dict[str, Any], metadata: dict[bytes, bytes]) -> bytes:
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


_SIGN = np.uint64(1 << 63)


def key_type(dtype: pa.DataType) -> t.DataType | None:
    """Return the Spark type of the keys of values; None for values that Spark cannot sort."""
    keys = key_array([], dtype).type
    if pa.types.is_integer(keys):
        return t.LongType()
    if pa.types.is_decimal128(keys):
        return t.DecimalType(keys.precision, keys.scale)
    is_bytes = pa.types.is_binary(keys) or pa.types.is_large_binary(keys)
    return t.BinaryType() if is_bytes or pa.types.is_fixed_size_binary(keys) else None


def spark_keys(values: pa.Array) -> pa.Array:
    """Return the keys of values as Spark sorts them; null where a value is null."""
    keys = keys_of(values)
    if pa.types.is_uint64(keys.type):
        is_null = np.asarray(keys.is_null())
        numbers = keys.fill_null(0).to_numpy(zero_copy_only=False) ^ _SIGN
        return pa.array(numbers.view(np.int64), pa.int64(), mask=is_null)
    if pa.types.is_integer(keys.type):
        return keys.cast(pa.int64())
    return keys if pa.types.is_decimal128(keys.type) else keys.cast(pa.binary())


def values_of_keys(keys: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Return the values that have these keys of Spark's."""
    own = key_array([], dtype).type
    if pa.types.is_uint64(own):
        is_null = np.asarray(keys.is_null())
        numbers = keys.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64) ^ _SIGN
        return values_of(pa.array(numbers, own, mask=is_null), dtype)
    return values_of(keys.cast(own), dtype)


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
            return _RangeBuild(self.spark, build, folder).run(rows, count)
        return BuiltByTasks(engine)(build, folder)

    def begun(self, build: SegmentBuild) -> UUID | None:
        """Return the folder in which an earlier attempt has written ranges of the same segment."""
        if not _has_ranges(build) or _rows(build) < EMBEDDED_ROWS:
            return None
        plan = RangePlan.resume(build)
        return None if plan is None else plan.segment.unique


def _has_ranges(build: SegmentBuild) -> bool:
    return build.target.kind is BTREE and key_type(build.target.dtype) is not None


def _rows(build: SegmentBuild) -> int:
    base = build.base
    fragments = (fr for fr in base.manifest.fragments if fr.id in build.fragments)
    return sum(live_rows(base.files, base.manifest_at, fragment) for fragment in fragments)


@dataclass(frozen=True, slots=True)
class _RangeBuild:
    """Lets Spark send each range of values to one task, which writes it; rows pass no driver."""

    spark: SparkSession
    build: SegmentBuild
    folder: SegmentFolder

    def run(self, rows: int, count: int) -> BuiltSegment:
        build, dtype = self.build, self.build.target.dtype
        unique = UUID(self.folder.place.path.rsplit("/", 1)[-1])
        plan = RangePlan.resume(build)
        if plan is None or plan.segment.unique != unique:
            every = max(1, rows // (count * _SAMPLED_PER_RANGE))
            plan = RangePlan.begin(build, unique, Ranges.of(self._sample(every), count))
        pages = plan.read_pages()
        missing = [place for place in range(len(plan.ranges.bounds) + 1) if place not in pages]
        pages |= self._write(plan, missing)
        if not plan.finish():
            problem = "another writer has completed the same index build"
            raise RetryableConflictError(problem, table=build.base.location.uri)
        ranges = [pages[place] for place in sorted(pages)]
        version = BTREE.new_version(has_stable_row_ids=build.base.manifest.has_stable_row_ids)
        args = ranges, dtype, build.parameters, self.folder
        segment = BTREE.finish_ranges(*args, index_version=version)
        plan.segment.remove_others(segment.files)
        return segment

    def _sample(self, every: int) -> pa.Array:
        """Return some of the keys, in no order."""
        keys = self._read(_ReadKeys(self._parts(), every=every), [_KEY]).toArrow().column(0)
        return pa.concat_arrays(keys.chunks) if keys.num_chunks else pa.array([], keys.type)

    def _write(self, plan: RangePlan, missing: list[int]) -> dict[int, WrittenPages]:
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
        written = on_partitions(rows, work, description=description)
        return dict(each for each in written if each is not None)

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
                yield from map(self._of_ranges, rows) if self.ranges else self._sample_keys(rows)

    def _sample_keys(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        start = 0
        for part in rows:
            places = pa.array(range(start, part.num_rows, self.every), pa.int64())
            start = (start - part.num_rows) % self.every
            keys = spark_keys(part.column(0).take(places))
            yield pa.RecordBatch.from_arrays([keys], names=[_KEY])

    def _of_ranges(self, part: pa.RecordBatch) -> pa.RecordBatch:
        assert self.ranges is not None
        keys = spark_keys(part.column(0))
        order, numbers = self.ranges.sort(keys)
        # The range of a row becomes the position of the range among those that are wanted.
        positions = np.full(len(self.ranges.bounds) + 1, -1, np.int32)
        positions[list(self.wanted)] = np.arange(len(self.wanted), dtype=np.int32)
        wanted = positions[numbers]
        ids = part.column(1).view(pa.int64())
        columns = [pa.array(wanted), keys.take(order), ids.take(order)]
        rows = pa.RecordBatch.from_arrays(columns, names=[_RANGE, _KEY, _ID])
        return rows if (wanted >= 0).all() else rows.filter(pa.array(wanted >= 0))


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
        batches_of_range = self._rows(chain([first], batches))
        rows = BuildInput(dtype=self.dtype, batches=batches_of_range, parameters=self.parameters)
        # Two attempts may run at once: each has a file of its own.
        attempt = default_session().ids.uuid4().int & _ATTEMPTS
        pages = BTREE.build_range(rows, place, self.folder, attempt=attempt)
        record_pages(self.segment, place, pages)
        return place, pages

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = row_schema(self.dtype)
        for batch in batches:
            values = values_of_keys(batch.column(1), self.dtype)
            ids = batch.column(2).view(pa.uint64())
            yield pa.RecordBatch.from_arrays([values, ids], schema=schema)
