"""Building a BTREE index, and its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, IndexFileWriter, SegmentFolder
from lancelake.data.codec.readers import LegacyFormatError
from lancelake.data.legacy.legacy_file import LegacyIndexFile
from lancelake.errors import InternalError
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.order import are_in_order, keys_of

LOOKUP_FILE = "page_lookup.lance"
PAGE_FILE = "page_data.lance"

VALUES, IDS = "values", "ids"
_EARLY_IDS = "row_ids"
MIN, MAX, NULL_COUNT, PAGE = "min", "max", "null_count", "page_idx"

PAGE_ROWS = "batch_size"
IS_RANGED = "range_partitioned"
PAGES_OF_PARTS = "page_num_per_range_partition"

DEFAULT_PAGE_ROWS = 4096
PAGE_ROWS_PARAMETER = "zone_size"


def part_file(part: int) -> str:
    """Name of the pages of a part."""
    return f"part_{part}_{PAGE_FILE}"


def part_lookup(part: int) -> str:
    """Name of the bounds of a part that was not merged yet."""
    return f"part_{part}_{LOOKUP_FILE}"


def part_number(place: int) -> int:
    """Return the number of the part with the range at this position."""
    return place << 32


def ids_name(schema: pa.Schema) -> str:
    """Name of the column of row ids: releases before 0.33 had another."""
    names = schema.names
    return _EARLY_IDS if _EARLY_IDS in names and IDS not in names else IDS


def has_early_names(folder: SegmentFolder) -> bool:
    """Whether a release before 0.33 wrote a segment."""
    return not folder.fits(PAGE_FILE, lambda name: _has_names(open_file(folder, name).schema))


def _has_names(schema: pa.Schema) -> bool:
    return ids_name(schema) == IDS


def open_file(folder: SegmentFolder, name: str) -> IndexFileReader:
    """Open a file of a segment, in the format of its release."""
    try:
        return folder.open(name)
    except LegacyFormatError:
        return LegacyIndexFile(folder.file(name))


def page_schema(dtype: pa.DataType) -> pa.Schema:
    """Columns of a file of pages."""
    return pa.schema([pa.field(VALUES, dtype), pa.field(IDS, pa.uint64(), nullable=False)])


def lookup_schema(dtype: pa.DataType) -> pa.Schema:
    """Columns of the table of bounds."""
    return pa.schema(
        [
            pa.field(MIN, dtype),
            pa.field(MAX, dtype),
            pa.field(NULL_COUNT, pa.uint32(), nullable=False),
            pa.field(PAGE, pa.uint32(), nullable=False),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPages:
    """A page file, None without pages, and the bounds of each page."""

    number: int
    """What the name of the file has, if it is one of several."""
    file: IndexFile | None
    min: pa.Array
    max: pa.Array
    null_count: pa.Array

    def __len__(self) -> int:
        return len(self.min)


def write_one_file(
    folder: SegmentFolder,
    dtype: pa.DataType,
    batches: Iterable[pa.RecordBatch],
    page_rows: int,
    *,
    part: int | None = None,
) -> tuple[IndexFile, ...]:
    """Write all rows, in value order, as one file of pages; those of a part are merged later."""
    name = PAGE_FILE if part is None else part_file(part)
    lookup = LOOKUP_FILE if part is None else part_lookup(part)
    pages = _write_pages(folder, name, dtype, batches, page_rows)
    file = pages.file or folder.create(name, page_schema(dtype)).finish()
    metadata = {PAGE_ROWS: str(page_rows), IS_RANGED: "false"}
    return file, _write_lookup(folder, dtype, [pages], metadata, name=lookup)


def write_range(
    folder: SegmentFolder,
    dtype: pa.DataType,
    place: int,
    batches: Iterable[pa.RecordBatch],
    page_rows: int,
    *,
    attempt: int = 0,
) -> WrittenPages:
    """Write the rows of one range of values, in value order; ranges are counted from the lowest.

    Equal values, and nulls, may be in several ranges. Attempts to write the same range have files
    of their own.
    """
    number = part_number(place) | attempt
    name = part_file(number)
    return _write_pages(folder, name, dtype, batches, page_rows, number=number)


def finish_ranges(
    folder: SegmentFolder,
    dtype: pa.DataType,
    ranges: Sequence[WrittenPages],
    page_rows: int,
) -> tuple[IndexFile, ...]:
    """Complete an index whose ranges, from the lowest on, are written."""
    written = [part.file for part in ranges if part.file is not None]
    if not written:
        return write_one_file(folder, dtype, (), page_rows)
    # Official releases fail on a range that has no pages.
    pages = [[part.number, len(part)] for part in ranges if len(part)]
    metadata = {
        PAGE_ROWS: str(page_rows),
        IS_RANGED: "true",
        PAGES_OF_PARTS: json.dumps(pages, separators=(",", ":")),
    }
    lookup = _write_lookup(folder, dtype, ranges, metadata)
    return (*written, lookup)


def _write_pages(
    folder: SegmentFolder,
    name: str,
    dtype: pa.DataType,
    batches: Iterable[pa.RecordBatch],
    page_rows: int,
    *,
    number: int = 0,
) -> WrittenPages:
    schema = page_schema(dtype)
    writer: IndexFileWriter | None = None
    bounds = _Bounds(dtype, page_rows)
    for batch in batches:
        if not batch.num_rows:
            continue
        writer = writer or folder.create(name, schema)
        values, ids = batch.column(VALUE), batch.column(ROW_ID)
        writer.write(pa.RecordBatch.from_arrays([values, ids], schema=schema))
        bounds.add(values)
    low, high, nulls = bounds.finish(name)
    file = None if writer is None else writer.finish()
    return WrittenPages(number=number, file=file, min=low, max=high, null_count=nulls)


class _Bounds:
    """Collects the first and the last value of each page."""

    def __init__(self, dtype: pa.DataType, page_rows: int) -> None:
        self._page_rows = page_rows
        self._rows = self._nulls = 0
        none = pa.array([], dtype)
        self._first, self._last, self._latest = [none], [none], none

    def add(self, values: pa.Array) -> None:
        """Add the values of the next rows, at least one."""
        start, size = self._rows, self._page_rows
        self._first.append(_every(values, -start % size, size))
        self._last.append(_every(values, (size - 1 - start) % size, size))
        self._latest = values.take(pa.array([len(values) - 1]))
        self._rows += len(values)
        self._nulls += values.null_count

    def finish(self, name: str) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return the least value, the greatest, and the number of nulls of each page."""
        if self._rows % self._page_rows:
            self._last.append(self._latest)
        low, high = pa.concat_arrays(self._first), pa.concat_arrays(self._last)
        if not are_in_order(keys_of(low), keys_of(high)):
            raise InternalError(f"rows for index file {name} are not in value order")
        # Nulls come first.
        starts = np.arange(len(low), dtype=np.int64) * self._page_rows
        nulls = np.clip(self._nulls - starts, 0, self._page_rows).astype(np.uint32)
        return low, high, pa.array(nulls, pa.uint32())


def _every(values: pa.Array, start: int, step: int) -> pa.Array:
    return values.take(pa.array(np.arange(start, len(values), step, dtype=np.int64)))


def _write_lookup(
    folder: SegmentFolder,
    dtype: pa.DataType,
    parts: Sequence[WrittenPages],
    metadata: dict[str, str],
    *,
    name: str = LOOKUP_FILE,
) -> IndexFile:
    schema = lookup_schema(dtype)
    writer = folder.create(name, schema)
    first = 0
    for part in parts:
        numbers = pa.array(range(first, first + len(part)), pa.uint32())
        columns = [part.min, part.max, part.null_count, numbers]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
        first += len(part)
    return writer.finish(metadata)
