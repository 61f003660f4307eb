"""Ranges of a BTREE that is built on executors: their bounds, and those that are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.format.index_meta import IndexFile
from lancelake.index.scalar.btree.build import WrittenPages
from lancelake.table.index.build import SegmentBuild
from lancelake.table.index.build_record import BuildRecord, build_name

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
        known = sample.drop_null()
        ordered = known.take(pc.sort_indices(known))
        places = np.arange(1, count) * len(ordered) // count
        return Ranges(bounds=ordered.take(pa.array(places[: len(ordered)])).unique())

    def sorted(self, keys: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Return the order of keys, and the range of each in this order; nulls are in the first."""
        order, known = pc.sort_indices(keys), len(keys) - keys.null_count
        order = pa.concat_arrays([order[known:], order[:known]])
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
    def begun(build: SegmentBuild) -> RangePlan | None:
        """Return the plan of an earlier attempt that was not completed."""
        record = _record(build)
        data = record.read(_PLAN)
        if data is None:
            return None
        found = pa.ipc.open_stream(data).read_all()
        unique = UUID((found.schema.metadata or {})[_SEGMENT].decode())
        segment = BuildRecord(location=record.location, unique=unique)
        if segment.is_claimed:
            return None
        bounds = found.column(0).combine_chunks()
        return RangePlan(record=record, segment=segment, ranges=Ranges(bounds=bounds))

    @staticmethod
    def begin(build: SegmentBuild, unique: UUID, ranges: Ranges) -> RangePlan:
        """Record a plan before its ranges are written."""
        record = _record(build)
        metadata = {_SEGMENT: str(unique).encode()}
        record.write(_PLAN, _stream({"bounds": ranges.bounds}, metadata))
        segment = BuildRecord(location=record.location, unique=unique)
        return RangePlan(record=record, segment=segment, ranges=ranges)

    def written(self) -> dict[int, WrittenPages]:
        """Return the ranges of which an earlier attempt has written all rows."""
        places = [
            int(name.removeprefix(_WRITTEN))
            for name in self.segment.names()
            if name.startswith(_WRITTEN)
        ]
        found = {place: read_written(self.segment, place) for place in sorted(places)}
        return {place: pages for place, pages in found.items() if pages is not None}

    def finish(self) -> bool:
        """Reserve the folder; False if another attempt has completed the segment."""
        if not self.segment.claim():
            return False
        self.record.remove([_PLAN])
        return True


def write_written(segment: BuildRecord, place: int, pages: WrittenPages) -> None:
    """Record that the file of a range is complete."""
    assert pages.file is not None  # a range is written for its rows
    metadata = {
        _NUMBER: str(pages.number).encode(),
        _FILE: pages.file.path.encode(),
        _SIZE: str(pages.file.size_bytes).encode(),
    }
    columns = {"min": pages.min, "max": pages.max, "null_count": pages.null_count}
    segment.write(f"{_WRITTEN}{place}", _stream(columns, metadata))


def read_written(segment: BuildRecord, place: int) -> WrittenPages | None:
    """Return a range whose file is complete; None if it is not."""
    data = segment.read(f"{_WRITTEN}{place}")
    if data is None:
        return None
    found = pa.ipc.open_stream(data).read_all().combine_chunks()
    facts = found.schema.metadata or {}
    file = IndexFile(path=facts[_FILE].decode(), size_bytes=int(facts[_SIZE]))
    if not segment.has([file]):
        return None
    low, high, nulls = (_whole(column) for column in found.columns)
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
