"""Lookup table of a BTREE: bounds and files of its pages."""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.index import cache
from lancelake.index.key_range import KeyPoints, KeyRange, place_of
from lancelake.index.order import (
    Positions,
    are_in_order,
    keys_of,
    running_maximum,
    search,
    sort_positions,
)
from lancelake.index.scalar.btree import files

_BYTES_PER_PAGE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file of pages, the number of its first page, and how many it has."""

    name: str
    first: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Pages with values by their least key, and pages with nulls."""

    path: str
    page_rows: int
    parts: tuple[PageFile, ...]
    null_counts: Positions
    """Nulls of each page, by its number."""
    numbers: Positions
    """Numbers of the pages with values; those that start with nulls come first."""
    open_pages: int
    """Number of these pages that start with nulls."""
    least: pa.Array
    """The least key of each page after those."""
    greatest: pa.Array
    """The greatest key of each page and all before it."""
    min: pa.Scalar | None
    max: pa.Scalar | None
    is_ordered: bool
    """Whether the pages are in value order, nulls first."""

    @property
    def num_pages(self) -> int:
        """Number of pages."""
        return len(self.null_counts)

    def near(self, wanted: KeyRange) -> tuple[int, int]:
        """Return the positions, first and end, of the pages that can have keys of a range."""
        first = place_of(self.greatest, wanted.lower, 0)
        end = self.open_pages + place_of(self.least, wanted.upper, len(self.least))
        return first, max(first, end)

    def inside(self, wanted: KeyRange) -> tuple[int, int]:
        """Return the positions, first and end, of pages with only keys of a range."""
        first = self.open_pages + place_of(self.least, wanted.lower, 0)
        end = place_of(self.greatest, wanted.upper, len(self.greatest))
        return first, max(first, end)

    def near_points(self, wanted: KeyPoints) -> tuple[Positions, Positions]:
        """Return the same as `near`, for each of some points."""
        first = search(self.greatest, wanted.first, "left")
        end = self.open_pages + search(self.least, wanted.last, "right")
        return first, np.maximum(first, end)

    def part_of(self, page: int) -> PageFile:
        """Return the file that has a page."""
        place = bisect.bisect_right(self.parts, page, key=lambda part: part.first) - 1
        part = self.parts[place]
        if not part.first <= page < part.first + part.pages:
            msg = f"index file {self.path} refers to page {page}, which no file has"
            raise CorruptTableError(msg, path=self.path)
        return part


def open_lookup(folder: SegmentFolder) -> Lookup:
    """Load the lookup table of a segment, cached."""
    return cache.kept(
        folder.uri,
        files.LOOKUP_FILE,
        lambda: _load(folder),
        lambda found: found.greatest.nbytes * 2 + found.num_pages * _BYTES_PER_PAGE,
    )


def _load(folder: SegmentFolder) -> Lookup:
    # A search reads a page next, and the disk can be busy with its file meanwhile.
    folder.expect(files.PAGE_FILE)
    return _read(folder.open(files.LOOKUP_FILE), folder.file(files.LOOKUP_FILE).path)


def _read(reader: IndexFileReader, path: str) -> Lookup:
    table = reader.read()
    reader.require(files.MIN, files.MAX, files.NULL_COUNT, files.PAGE)
    numbers = _numbers(table)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        table = table.sort_by(files.PAGE)
        numbers = _numbers(table)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        raise CorruptTableError(f"index file {path} does not list each page once", path=path)
    low, high = (_column(table, name) for name in (files.MIN, files.MAX))
    low_keys, high_keys = keys_of(low), keys_of(high)
    if is_ordered := are_in_order(low_keys, high_keys):
        without_values = high_keys.null_count
        order, least = numbers[without_values:], low_keys[without_values:]
        greatest = high_keys[without_values:]
    else:
        order = sort_positions(low_keys)
        order = order[high_keys.is_valid().to_numpy(zero_copy_only=False)[order]]
        least = low_keys.take(pa.array(order))
        greatest = running_maximum(high_keys.take(pa.array(order)))
    last = int(search(greatest, greatest[-1:], "left")[0]) if len(order) else 0
    return Lookup(
        path=path,
        page_rows=_page_rows(reader, path),
        parts=_parts(reader, path, len(numbers)),
        null_counts=_column(table, files.NULL_COUNT).to_numpy().astype(np.int64),
        numbers=order,
        open_pages=least.null_count,
        least=least[least.null_count :],
        greatest=greatest,
        min=low[int(order[0])] if len(order) else None,
        max=high[int(order[last])] if len(order) else None,
        is_ordered=is_ordered,
    )


def _page_rows(reader: IndexFileReader, path: str) -> int:
    text = reader.metadata.get(files.PAGE_ROWS, str(files.DEFAULT_PAGE_ROWS))
    if not text.isdecimal() or not int(text):
        raise CorruptTableError(f"index file {path} has pages of {text!r} rows", path=path)
    return int(text)


def _parts(reader: IndexFileReader, path: str, pages: int) -> tuple[PageFile, ...]:
    if reader.metadata.get(files.IS_RANGED) != "true":
        return (PageFile(name=files.PAGE_FILE, first=0, pages=pages),)
    text = reader.metadata.get(files.PAGES_OF_PARTS, "")
    try:
        counts = [(int(number), int(count)) for number, count in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"index file {path} has an invalid list of parts: {text!r}"
        raise CorruptTableError(msg, path=path) from error
    parts: list[PageFile] = []
    first = 0
    for number, count in counts:
        parts.append(PageFile(name=files.part_file(number), first=first, pages=count))
        first += count
    return tuple(parts)


def _numbers(table: pa.Table) -> Positions:
    return np.asarray(_column(table, files.PAGE).to_numpy(), dtype=np.int64)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
