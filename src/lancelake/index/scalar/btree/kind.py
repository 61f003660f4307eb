"""BTREE index: build, open, merge and remap of segments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import InvalidRequestError
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index.kind import (
    DROPPED,
    ROW_ID,
    BuildInput,
    BuiltSegment,
    IdKind,
    Order,
    Parameters,
    RowMap,
    SegmentFacts,
)
from lancelake.index.order import has_order
from lancelake.index.row_ids import RowIds
from lancelake.index.scalar.btree import files
from lancelake.index.scalar.btree.build import (
    WrittenPages,
    finish_ranges,
    write_one_file,
    write_range,
)
from lancelake.index.scalar.btree.segment import BTreeSegment
from lancelake.index.scalar.parameters import ensure_known
from lancelake.index.sort import merge_sorted

_DETAILS = IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b"")
_BY_ADDRESS = 1
"""From this version on, rows are stored by address in every table."""


class BTree:
    """Sorted values in pages: for equality, ranges, starts of texts, and nulls."""

    name = "BTREE"
    details_type = "btreeindexdetails"
    max_version = _BY_ADDRESS
    order = Order.VALUE

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether values of a type have an order."""
        return has_order(dtype)

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files have a layout that is read."""
        columns = {files.VALUES, files.IDS}
        return folder.fits(files.PAGE_FILE, lambda file: columns <= set(file.schema.names))

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> IdKind:
        """Return whether a segment stores addresses or stable row ids."""
        is_stable = has_stable_row_ids and index_version < _BY_ADDRESS
        return IdKind.STABLE_ID if is_stable else IdKind.ADDRESS

    def build(self, rows: BuildInput, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment as one file of pages."""
        page_rows = page_rows_of(rows.parameters, files.DEFAULT_PAGE_ROWS)
        return _built(write_one_file(folder, rows.dtype, rows.batches, page_rows))

    def build_range(
        self, rows: BuildInput, place: int, folder: SegmentFolder, *, attempt: int = 0
    ) -> WrittenPages:
        """Write the rows of one range of values, in value order, as a file of its own.

        Ranges are counted from the lowest; equal values, and nulls, may be in several. `attempt`,
        below 2**32, distinguishes files of the same range.
        """
        page_rows = page_rows_of(rows.parameters, files.DEFAULT_PAGE_ROWS)
        return write_range(folder, rows.dtype, place, rows.batches, page_rows, attempt=attempt)

    def finish_ranges(
        self,
        ranges: Sequence[WrittenPages],
        dtype: pa.DataType,
        parameters: Parameters,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Complete a segment of ranges that are written, from the lowest on."""
        page_rows = page_rows_of(parameters, files.DEFAULT_PAGE_ROWS)
        return _built(finish_ranges(folder, dtype, ranges, page_rows))

    def open(self, facts: SegmentFacts) -> BTreeSegment:
        """Open a segment."""
        return BTreeSegment(facts)

    def merge(
        self,
        segments: Sequence[tuple[SegmentFacts, RowIds | None]],
        rows: BuildInput,
        folder: SegmentFolder,
    ) -> BuiltSegment:
        """Merge several segments and new rows into one file of pages."""
        opened = [BTreeSegment(facts) for facts, _ in segments]
        streams: list[Iterable[pa.RecordBatch]] = [
            _only(segment.entries(), ids)
            for segment, (_, ids) in zip(opened, segments, strict=True)
        ]
        merged = merge_sorted(rows.dtype, [*streams, rows.batches])
        default = opened[0].lookup.page_rows if opened else files.DEFAULT_PAGE_ROWS
        page_rows = page_rows_of(rows.parameters, default)
        written = write_one_file(folder, rows.dtype, merged, page_rows)
        return _built(written, common_version(facts for facts, _ in segments))

    def remap(self, facts: SegmentFacts, row_map: RowMap, folder: SegmentFolder) -> BuiltSegment:
        """Write a segment with other row ids, in as many files of pages."""
        segment = BTreeSegment(facts)
        lookup, dtype = segment.lookup, facts.dtype
        if len(lookup.parts) == 1 and lookup.parts[0].name == files.PAGE_FILE:
            rows = _mapped(segment.entries(), row_map)
            written = write_one_file(folder, dtype, rows, lookup.page_rows)
        else:
            streams = (_mapped(segment.part_entries(part), row_map) for part in lookup.parts)
            ranges = [
                write_range(folder, dtype, place, rows, lookup.page_rows)
                for place, rows in enumerate(streams)
            ]
            written = finish_ranges(folder, dtype, ranges, lookup.page_rows)
        return _built(written, facts.index_version)


def common_version(segments: Iterable[SegmentFacts]) -> int:
    """Return the version of segments to be merged, which store the same kind of row ids."""
    versions = {facts.index_version for facts in segments} or {0}
    if len(versions) > 1:
        found = ", ".join(map(str, sorted(versions)))
        msg = f"index segments of versions {found} cannot be merged"
        raise InvalidRequestError(msg, action="Rebuild the index.")
    return versions.pop()


def _built(written: tuple[IndexFile, ...], index_version: int = 0) -> BuiltSegment:
    return BuiltSegment(details=_DETAILS, index_version=index_version, files=written)


def page_rows_of(parameters: Parameters, default: int) -> int:
    """Return the number of rows per page that parameters ask for."""
    ensure_known("BTREE", parameters, {files.PAGE_ROWS_PARAMETER})
    found = parameters.get(files.PAGE_ROWS_PARAMETER)
    if found is None:
        return default
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 1 << 32:
        raise InvalidRequestError(
            f"{files.PAGE_ROWS_PARAMETER} must be a positive number of rows, not {found!r}"
        )
    return found


def _only(batches: Iterator[pa.RecordBatch], ids: RowIds | None) -> Iterator[pa.RecordBatch]:
    if ids is None:
        yield from batches
        return
    is_wanted = ids.tester()
    for batch in batches:
        kept = is_wanted(batch.column(ROW_ID).to_numpy())
        yield batch if kept.all() else batch.filter(pa.array(kept))


def _mapped(batches: Iterator[pa.RecordBatch], row_map: RowMap) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ids = row_map(batch.column(ROW_ID).to_numpy())
        columns = [batch.column(0), pa.array(ids, pa.uint64())]
        mapped = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        is_left = ids != np.uint64(DROPPED)
        yield mapped if is_left.all() else mapped.filter(pa.array(is_left))


BTREE = BTree()
