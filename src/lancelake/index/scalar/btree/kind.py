"""BTREE index: values in order, in pages."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.data.legacy.legacy_file import LegacyIndexFile
from lancelake.engine.port import Stages
from lancelake.errors import InvalidRequestError
from lancelake.expr.condition import Comparison, IsNull, Leaf, Membership, Operator
from lancelake.expr.literals import is_binary
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.index import cache, kind
from lancelake.index import order as key_order
from lancelake.index.row_sets import EMPTY, Answer, RowIds, U64Array
from lancelake.index.scalar.btree import build
from lancelake.index.scalar.btree.build import (
    WrittenPages,
    finish_ranges,
    write_one_file,
    write_range,
)
from lancelake.index.scalar.btree.pages import (
    MOST_KEPT,
    Lookup,
    PageFile,
    Pages,
    has_stale_bounds,
    open_lookup,
)
from lancelake.index.sort import merge_sorted, row_schema, value_sorted

_SHOWN_BYTES = 10


def shown_value(value: pa.Scalar) -> str:
    """Return the text of a value."""
    dtype = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(dtype):
        return str(value.as_py()).lower()
    if pa.types.is_floating(dtype):
        return _number(float(value.as_py()), dtype)
    if is_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        data: bytes = value.as_py()
        more = "..." if len(data) > _SHOWN_BYTES else ""
        return data[:_SHOWN_BYTES].hex().upper() + more
    if pa.types.is_decimal(dtype):
        digits = int(value.as_py().scaleb(dtype.scale))
        return f"Some({digits}),{dtype.precision},{dtype.scale}"
    if pa.types.is_date(dtype):
        return _day(value)
    is_raw = pa.types.is_temporal(dtype)
    return str(value.value if is_raw else value.as_py())


def _number(number: float, dtype: pa.DataType) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else str(number)
    exact = np.float64(number) if pa.types.is_float64(dtype) else np.float32(number)
    return np.format_float_positional(exact, unique=True, trim="-")


def _day(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):
        return str(value.value)  # past the calendar of Python


_STALE = "has stale bounds"


class BTreeSegment(kind.SortedSegment):
    """A BTREE that can be searched; its files are opened by the first search."""

    def __init__(self, facts: kind.SegmentFacts) -> None:
        self._folder = facts.folder
        self._dtype = facts.dtype

    @property
    def lookup(self) -> Lookup:
        """The bounds of the pages."""
        return open_lookup(self._folder)

    def answer(self, leaf: Leaf) -> Answer | None:
        """Search comparisons, lists of values, null tests and prefixes."""
        match leaf:
            case IsNull():
                return Answer.exact(self._pages().nulls())
            case Comparison(operator=Operator.NOT_EQUAL):
                equal = Comparison(column=leaf.column, operator=Operator.EQUAL, value=leaf.value)
                answer = self.answer(equal)
                return None if answer is None else ~answer
            case Membership():
                return self._membership(leaf)
            case _:
                wanted = key_order.range_of(leaf)
                return None if wanted is None else self.answer_range(wanted)

    def answer_range(self, wanted: key_order.KeyRange) -> Answer:
        """Search a condition that is true for the keys of a range."""
        lookup = self.lookup
        pages = Pages(self._folder, lookup)
        first, end = lookup.near(wanted)
        if _is_most(end - first, lookup) and (others := _complement(wanted)) is not None:
            return ~Answer.exact(_set(self._range(lookup, pages, others)), pages.nulls())
        return Answer.exact(_set(self._range(lookup, pages, wanted)), pages.nulls())

    def ids_in_range(self, wanted: key_order.KeyRange) -> U64Array:
        """Return the row ids of the keys of a range, in any order."""
        ids = self._range(self.lookup, self._pages(), wanted)
        return np.concatenate(ids) if ids else np.zeros(0, dtype=np.uint64)

    def rows_at(self, wanted: key_order.KeyPoints) -> tuple[key_order.Positions, U64Array]:
        """Return the rows with one of several keys: the number of the key, and the row id."""
        points, id_parts = self._points(self.lookup, self._pages(), wanted)
        if not id_parts:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        return np.repeat(points, [len(ids) for ids in id_parts]), np.concatenate(id_parts)

    def num_entries(self) -> int:
        """Return how many values and nulls are indexed."""
        pages = self._pages()
        return sum(pages.reader(part).num_rows for part in self.lookup.parts if part.pages)

    def has_stale_bounds(self) -> bool:
        """Whether pages have rows outside of their bounds."""
        folder, lookup = self._folder, self.lookup
        file = cache.of(folder.place)
        return cache.kept(file, _STALE, lambda: has_stale_bounds(folder, lookup), lambda _: 0)

    def share_read(self, wanted: key_order.KeyRange) -> float:
        """Estimate the share of the pages that are read to answer a range."""
        lookup = self.lookup
        first, end = lookup.near(wanted)
        if _is_most(end - first, lookup) and (others := _complement(wanted)) is not None:
            first, end = lookup.near(others)
        return (end - first) / max(1, lookup.num_pages)

    def num_rows(self) -> int:
        """Return about how many rows are indexed: the last page is taken for a full one."""
        return self.lookup.num_pages * self.lookup.page_rows

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream all values and row ids in value order."""
        parts = (self.part_entries(part) for part in self.lookup.parts if part.pages)
        rows = itertools.chain.from_iterable(parts)
        # Other writers may have nulls in several ranges.
        yield from rows if self.lookup.is_ordered else value_sorted(self._dtype, rows)

    def part_entries(self, part: PageFile) -> Iterator[pa.RecordBatch]:
        """Stream the values and row ids of one file of pages."""
        schema = row_schema(self._dtype)
        reader = self._pages().reader(part)
        columns = [build.VALUES, build.ids_name(reader.schema)]
        reader.require(*columns)
        for batch in reader.batches(columns=columns):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def statistics(self) -> Mapping[str, Any]:
        """Return the bounds of the values, and the number of pages."""
        lookup = self.lookup
        if not lookup.num_pages:
            return {}
        low, high = ("N/A" if v is None else shown_value(v) for v in (lookup.min, lookup.max))
        return {"min": low, "max": high, "num_pages": lookup.num_pages}

    def parameters(self) -> kind.Parameters:
        """Return the number of rows of a page."""
        return {build.PAGE_ROWS_PARAMETER: self.lookup.page_rows}

    def prewarm(self) -> None:
        """Read the pages, from the first, as many as are kept."""
        lookup, pages = self.lookup, self._pages()
        pages.nulls()
        for _ in pages.read(lookup.numbers[:MOST_KEPT].tolist()):
            pass

    def _pages(self) -> Pages:
        return Pages(self._folder, self.lookup)

    def _membership(self, leaf: Membership) -> Answer:
        pages = self._pages()
        rows = _set(self._points(self.lookup, pages, key_order.points_of(leaf.values))[1])
        # What is not found in a list with a null is unknown.
        return Answer.never_false(rows) if leaf.has_null else Answer.exact(rows, pages.nulls())

    def _range(self, lookup: Lookup, pages: Pages, wanted: key_order.KeyRange) -> list[U64Array]:
        first, end = lookup.near(wanted)
        start, stop = lookup.inside(wanted)
        inside = range(start, min(end, stop)) if start < min(end, stop) else range(first, first)
        border = [*range(first, inside.start), *range(inside.stop, end)]
        parts: list[U64Array] = []
        for _, keys, ids in pages.read(lookup.numbers[border].tolist()):
            low = key_order.place_of(keys, wanted.lower, 0)
            high = key_order.place_of(keys, wanted.upper, len(keys))
            nulls = len(ids) - len(keys)
            parts.append(ids[nulls + low : nulls + high])
        return parts + pages.ids(lookup.numbers[inside.start : inside.stop].tolist())

    def _points(
        self, lookup: Lookup, pages: Pages, wanted: key_order.KeyPoints
    ) -> tuple[list[int], list[U64Array]]:
        """Return numbers of points, some of them repeated, and the row ids of each."""
        first, end = lookup.near_points(wanted)
        edges = np.zeros(len(lookup.numbers) + 1, dtype=np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, end, -1)
        visited = np.flatnonzero(np.cumsum(edges))
        numbers = lookup.numbers[visited].tolist()
        # The points that a page can hold follow one another.
        starts = np.searchsorted(end, visited, "right").tolist()
        stops = np.searchsorted(first, visited, "right").tolist()
        points: list[int] = []
        parts: list[U64Array] = []
        for place, keys, ids in pages.read(numbers):
            low, high = wanted.places(keys, starts[place], stops[place])
            nulls = len(ids) - len(keys)
            for point, (a, b) in enumerate(zip(low, high, strict=True), starts[place]):
                if a < b:
                    points.append(point)
                    parts.append(ids[nulls + a : nulls + b])
        return points, parts


def _is_most(pages: int, lookup: Lookup) -> bool:
    """Whether pages are most of all, so that the others are faster to read."""
    return pages > lookup.num_pages // 2


def _complement(wanted: key_order.KeyRange) -> key_order.KeyRange | None:
    """Return the keys outside a range that is open on one side."""
    if wanted.lower is None and wanted.upper is not None:
        return key_order.KeyRange(lower=wanted.upper)
    if wanted.upper is None and wanted.lower is not None:
        return key_order.KeyRange(upper=wanted.lower)
    return None


def _set(parts: Sequence[U64Array]) -> RowIds:
    return RowIds.of(np.concatenate(parts)) if parts else EMPTY


_DETAILS = IndexDetails(type_url="/lance.table.BTreeIndexDetails", value=b"")
BY_ADDRESS = 1
"""From this version on, rows are stored by address in every table."""
_PART = re.compile(r"part_(\d+)_page_lookup\.lance")


class BTree(kind.IndexKind):
    """Sorted values in pages: for equality, ranges, starts of texts, and nulls."""

    name = "BTREE"
    details_type = "btreeindexdetails"
    max_version = BY_ADDRESS
    order = kind.Order.VALUE
    has_early_layouts = True

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether values of a type have an order."""
        return key_order.has_order(dtype)

    def reads(self, folder: SegmentFolder) -> bool:
        """Whether the files have a layout that is read, with the nulls if there are any."""

        def has_nulls() -> bool:
            return bool(open_lookup(folder).null_counts.any())

        def is_read(name: str) -> bool:
            file = build.open_file(folder, name)
            columns = {build.VALUES, build.ids_name(file.schema)}
            is_legacy = isinstance(file, LegacyIndexFile)
            return columns <= set(file.schema.names) and not (is_legacy and has_nulls())

        return folder.fits(build.PAGE_FILE, is_read)

    def stored_ids(self, index_version: int, *, has_stable_row_ids: bool) -> kind.IdKind:
        """Return whether a segment stores addresses or stable row ids."""
        is_stable = has_stable_row_ids and index_version < BY_ADDRESS
        return kind.IdKind.STABLE_ID if is_stable else kind.IdKind.ADDRESS

    def new_version(self, *, has_stable_row_ids: bool) -> int:
        """Return the version of new segments: as in release 14, it stores addresses everywhere.

        When release 4.0.2 refreshes one of stable row ids, it keeps the old values of updated rows.
        """
        return BY_ADDRESS if has_stable_row_ids else 0

    def wrote(self, names: Collection[str], dtype: pa.DataType) -> bool:
        """Whether there is a table of bounds."""
        return build.LOOKUP_FILE in names

    def build(self, rows: kind.BuildInput, folder: SegmentFolder) -> kind.BuiltSegment:
        """Write a segment as one file of pages."""
        page_rows = page_rows_of(rows.parameters, build.DEFAULT_PAGE_ROWS)
        written = write_one_file(folder, rows.dtype, rows.batches, page_rows)
        return _built(written, rows.index_version)

    def build_range(
        self, rows: kind.BuildInput, place: int, folder: SegmentFolder, *, attempt: int = 0
    ) -> WrittenPages:
        """Write the rows of one range of values, in value order, as a file of its own.

        Ranges are counted from the lowest; equal values, and nulls, may be in several. `attempt`,
        below 2**32, distinguishes files of the same range.
        """
        page_rows = page_rows_of(rows.parameters, build.DEFAULT_PAGE_ROWS)
        return write_range(folder, rows.dtype, place, rows.batches, page_rows, attempt=attempt)

    def finish_ranges(
        self,
        ranges: Sequence[WrittenPages],
        dtype: pa.DataType,
        parameters: kind.Parameters,
        folder: SegmentFolder,
        *,
        index_version: int = 0,
    ) -> kind.BuiltSegment:
        """Complete a segment of ranges that are written, from the lowest on."""
        page_rows = page_rows_of(parameters, build.DEFAULT_PAGE_ROWS)
        written = finish_ranges(folder, dtype, ranges, page_rows)
        return _built(written, index_version)

    def write_part(self, rows: kind.BuildInput, folder: SegmentFolder, first_fragment: int) -> None:
        """Write a part of a segment, in value order, with bounds of its own."""
        page_rows = page_rows_of(rows.parameters, build.DEFAULT_PAGE_ROWS)
        number = build.part_number(first_fragment)
        write_one_file(folder, rows.dtype, rows.batches, page_rows, part=number)

    def merge_parts(
        self, folder: SegmentFolder, names: Iterable[str], stages: Stages
    ) -> Sequence[str]:
        """Merge the parts among the files of a folder; return the names of files to remove."""
        matches = map(_PART.fullmatch, names)
        numbers = sorted(int(match[1]) for match in matches if match is not None)
        if not numbers:
            return ()
        page_rows = _page_rows(folder.open(build.part_lookup(numbers[0])))
        pages = [folder.open(build.part_file(number)) for number in numbers]
        dtype = pages[0].schema.field(build.VALUES).type
        merged = merge_sorted(dtype, [_entries(part, dtype) for part in pages])
        write_one_file(folder, dtype, merged, page_rows)
        return [name(n) for n in numbers for name in (build.part_lookup, build.part_file)]

    def open(self, facts: kind.SegmentFacts) -> BTreeSegment:
        """Open a segment."""
        return BTreeSegment(facts)

    def merge(
        self, segments: kind.Segments, rows: kind.BuildInput, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Merge several segments and new rows into one file of pages."""
        opened = [BTreeSegment(facts) for facts, _ in segments]
        streams: list[Iterable[pa.RecordBatch]] = [
            _only(segment.entries(), ids)
            for segment, (_, ids) in zip(opened, segments, strict=True)
        ]
        merged = merge_sorted(rows.dtype, [*streams, rows.batches])
        default = opened[0].lookup.page_rows if opened else build.DEFAULT_PAGE_ROWS
        page_rows = page_rows_of(rows.parameters, default)
        written = write_one_file(folder, rows.dtype, merged, page_rows)
        version = common_version(f for f, _ in segments) if segments else rows.index_version
        return _built(written, version)

    def remap(
        self, facts: kind.SegmentFacts, row_map: kind.RowMap, folder: SegmentFolder
    ) -> kind.BuiltSegment:
        """Write a segment with other row ids, in as many files of pages."""
        segment = BTreeSegment(facts)
        lookup, dtype = segment.lookup, facts.dtype
        if len(lookup.parts) == 1 and lookup.parts[0].name == build.PAGE_FILE:
            rows = _map_ids(segment.entries(), row_map)
            written = write_one_file(folder, dtype, rows, lookup.page_rows)
        else:
            streams = (_map_ids(segment.part_entries(part), row_map) for part in lookup.parts)
            ranges = [
                write_range(folder, dtype, place, rows, lookup.page_rows)
                for place, rows in enumerate(streams)
            ]
            written = finish_ranges(folder, dtype, ranges, lookup.page_rows)
        return _built(written, facts.index_version)


def common_version(segments: Iterable[kind.SegmentFacts]) -> int:
    """Return the version of segments to be merged, which store the same kind of row ids."""
    versions = {facts.index_version for facts in segments}
    if len(versions) > 1:
        listed = ", ".join(map(str, sorted(versions)))
        msg = f"index segments of versions {listed} cannot be merged"
        raise InvalidRequestError(msg, action="Rebuild the index.")
    return versions.pop()


def _entries(part: IndexFileReader, dtype: pa.DataType) -> Iterator[pa.RecordBatch]:
    schema = row_schema(dtype)
    for batch in part.batches(columns=[build.VALUES, build.IDS]):
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _page_rows(lookup: IndexFileReader) -> int:
    text = lookup.metadata.get(build.PAGE_ROWS, "")
    return int(text) if text.isdecimal() else build.DEFAULT_PAGE_ROWS


def _built(written: tuple[IndexFile, ...], index_version: int) -> kind.BuiltSegment:
    return kind.BuiltSegment(details=_DETAILS, index_version=index_version, files=written)


def page_rows_of(parameters: kind.Parameters, default: int) -> int:
    """Return the number of rows per page that parameters ask for."""
    kind.ensure_known("BTREE", parameters, {build.PAGE_ROWS_PARAMETER})
    page_rows = parameters.get(build.PAGE_ROWS_PARAMETER)
    if page_rows is None:
        return default
    if isinstance(page_rows, bool) or not isinstance(page_rows, int) or not 0 < page_rows < 1 << 32:
        raise InvalidRequestError(
            f"{build.PAGE_ROWS_PARAMETER} must be a positive number of rows, not {page_rows!r}"
        )
    return page_rows


def _only(batches: Iterator[pa.RecordBatch], ids: RowIds | None) -> Iterator[pa.RecordBatch]:
    if ids is None:
        yield from batches
        return
    is_wanted = ids.tester()
    for batch in batches:
        is_kept = is_wanted(batch.column(kind.ROW_ID).to_numpy())
        yield batch if is_kept.all() else batch.filter(pa.array(is_kept))


def _map_ids(batches: Iterator[pa.RecordBatch], row_map: kind.RowMap) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ids = row_map(batch.column(kind.ROW_ID).to_numpy())
        columns = [batch.column(0), pa.array(ids, pa.uint64())]
        mapped = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
        is_left = ids != np.uint64(kind.DROPPED)
        yield mapped if is_left.all() else mapped.filter(pa.array(is_left))


BTREE = BTree()
