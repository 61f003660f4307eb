"""Pages of a BTREE index, and which of them can hold a key.

Releases before 2.0 that compacted a table removed deleted rows from the pages, so that all rows
after them moved to other pages, and kept the lookup table. Searches of such a segment miss rows.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.index import cache
from lancelake.index import order as key_order
from lancelake.index.row_sets import EMPTY, RowIds, U64Array
from lancelake.index.scalar.btree import build

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
    null_counts: key_order.Positions
    """Nulls of each page, by its number."""
    numbers: key_order.Positions
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

    def near(self, wanted: key_order.KeyRange) -> tuple[int, int]:
        """Return the positions, first and end, of the pages that can have keys of a range."""
        first = key_order.place_of(self.greatest, wanted.lower, 0)
        end = self.open_pages + key_order.place_of(self.least, wanted.upper, len(self.least))
        return first, max(first, end)

    def inside(self, wanted: key_order.KeyRange) -> tuple[int, int]:
        """Return the positions, first and end, of pages with only keys of a range."""
        first = self.open_pages + key_order.place_of(self.least, wanted.lower, 0)
        end = key_order.place_of(self.greatest, wanted.upper, len(self.greatest))
        return first, max(first, end)

    def near_points(
        self, wanted: key_order.KeyPoints
    ) -> tuple[key_order.Positions, key_order.Positions]:
        """Return the same as `near`, for each of some points."""
        first = key_order.search(self.greatest, wanted.first, "left")
        end = self.open_pages + key_order.search(self.least, wanted.last, "right")
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
        cache.of(folder.place),
        build.LOOKUP_FILE,
        lambda: _load(folder),
        lambda value: value.greatest.nbytes * 2 + value.num_pages * _BYTES_PER_PAGE,
    )


def _load(folder: SegmentFolder) -> Lookup:
    # A search reads a page next, and the disk can be busy with its file meanwhile.
    folder.expect(build.PAGE_FILE)
    return _read(build.open_file(folder, build.LOOKUP_FILE), folder.file(build.LOOKUP_FILE).path)


def _read(reader: IndexFileReader, path: str) -> Lookup:
    table = reader.read()
    reader.require(build.MIN, build.MAX, build.NULL_COUNT, build.PAGE)
    numbers = _numbers(table)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        table = table.sort_by(build.PAGE)
        numbers = _numbers(table)
    if not np.array_equal(numbers, np.arange(len(numbers))):
        raise CorruptTableError(f"index file {path} does not list each page once", path=path)
    low, high = (_column(table, name) for name in (build.MIN, build.MAX))
    low_keys, high_keys = key_order.keys_of(low), key_order.keys_of(high)
    if is_ordered := key_order.are_in_order(low_keys, high_keys):
        without_values = high_keys.null_count
        order, least = numbers[without_values:], low_keys[without_values:]
        greatest = high_keys[without_values:]
    else:
        order = key_order.sort_positions(low_keys)
        order = order[high_keys.is_valid().to_numpy(zero_copy_only=False)[order]]
        least = low_keys.take(pa.array(order))
        greatest = key_order.running_maximum(high_keys.take(pa.array(order)))
    last = int(key_order.search(greatest, greatest[-1:], "left")[0]) if len(order) else 0
    return Lookup(
        path=path,
        page_rows=_page_rows(reader, path),
        parts=_parts(reader, path, len(numbers)),
        null_counts=_column(table, build.NULL_COUNT).to_numpy().astype(np.int64),
        numbers=order,
        open_pages=least.null_count,
        least=least[least.null_count :],
        greatest=greatest,
        min=low[int(order[0])] if len(order) else None,
        max=high[int(order[last])] if len(order) else None,
        is_ordered=is_ordered,
    )


def _page_rows(reader: IndexFileReader, path: str) -> int:
    text = reader.metadata.get(build.PAGE_ROWS, str(build.DEFAULT_PAGE_ROWS))
    if not text.isdecimal() or not int(text):
        raise CorruptTableError(f"index file {path} has pages of {text!r} rows", path=path)
    return int(text)


def _parts(reader: IndexFileReader, path: str, pages: int) -> tuple[PageFile, ...]:
    if reader.metadata.get(build.IS_RANGED) != "true":
        return (PageFile(name=build.PAGE_FILE, first=0, pages=pages),)
    text = reader.metadata.get(build.PAGES_OF_PARTS, "")
    try:
        counts = [(int(number), int(count)) for number, count in json.loads(text)]
    except (ValueError, TypeError, RecursionError) as error:
        msg = f"index file {path} has an invalid list of parts: {text!r}"
        raise CorruptTableError(msg, path=path) from error
    parts: list[PageFile] = []
    first = 0
    for number, count in counts:
        parts.append(PageFile(name=build.part_file(number), first=first, pages=count))
        first += count
    return tuple(parts)


def _numbers(table: pa.Table) -> key_order.Positions:
    return np.asarray(_column(table, build.PAGE).to_numpy(), dtype=np.int64)


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


# More pages are not cached: a search of this size is rare, and would evict the others.
MOST_KEPT = 4096
# Reading as many pages takes as long as starting to read elsewhere.
_MOST_SKIPPED = 2
_PAGES_AT_ONCE = 16
_NULLS = "nulls"


class BTreePage(NamedTuple):
    """The row ids of a page, and the keys of its values, ascending; rows of nulls come first."""

    place: int
    """Position among the pages that were asked for."""
    keys: pa.Array
    ids: U64Array


class Pages:
    """The pages of a segment, by number."""

    def __init__(self, folder: SegmentFolder, lookup: Lookup) -> None:
        self._folder = folder
        self._lookup = lookup
        self._uri = cache.of(folder.place)

    def read(self, pages: Sequence[int]) -> Iterator[BTreePage]:
        """Yield pages, each of which is asked for once, in any order."""
        all_keys = cache.find_all(self._uri, [(build.VALUES, page) for page in pages])
        all_ids = cache.find_all(self._uri, [(build.IDS, page) for page in pages])
        missing: dict[int, int] = {}
        for place, (keys, ids) in enumerate(zip(all_keys, all_ids, strict=True)):
            if isinstance(keys, pa.Array) and isinstance(ids, np.ndarray):
                yield BTreePage(place, keys, ids)
            else:
                missing[pages[place]] = place
        cache.count_loaded(sum(all_ids[place] is None for place in missing.values()))
        is_kept = len(missing) <= MOST_KEPT
        for number, batch in self._read_pages(list(missing)):
            keys = self._keys(number, batch.column(build.VALUES))
            ids = batch.column(build.ids_name(batch.schema)).to_numpy()
            if is_kept:
                cache.keep(self._uri, (build.VALUES, number), keys, int(keys.nbytes))
                cache.keep(self._uri, (build.IDS, number), ids, ids.nbytes)
            yield BTreePage(missing[number], keys, ids)

    def ids(self, pages: Sequence[int]) -> list[U64Array]:
        """Return the row ids of pages, those of nulls before the others."""
        all_kept = cache.find_all(self._uri, [(build.IDS, page) for page in pages])
        ids_of = {
            page: cached
            for page, cached in zip(pages, all_kept, strict=True)
            if isinstance(cached, np.ndarray)
        }
        missing = [page for page in pages if page not in ids_of]
        cache.count_loaded(len(missing))
        for number, batch in self._read_pages(missing, only_ids=True):
            ids = ids_of[number] = batch.column(0).to_numpy()
            if len(missing) <= MOST_KEPT:
                cache.keep(self._uri, (build.IDS, number), ids, ids.nbytes)
        return [ids_of[page] for page in pages]

    def nulls(self) -> RowIds:
        """Return the rows that are null."""
        return cache.kept(self._uri, _NULLS, self._read_nulls, lambda ids: ids.size_bytes)

    def reader(self, part: PageFile) -> IndexFileReader:
        """Return the file of a part, with as many rows as its pages need."""
        return cache.kept(self._uri, part, lambda: self._open(part), lambda _: 0)

    def _open(self, part: PageFile) -> IndexFileReader:
        reader = build.open_file(self._folder, part.name)
        if -(-reader.num_rows // self._lookup.page_rows) != part.pages:
            path = self._folder.file(part.name).path
            msg = f"index file {path} has {reader.num_rows} rows for {part.pages} pages"
            raise CorruptTableError(msg, path=path)
        return reader

    def _keys(self, page: int, values: pa.Array) -> pa.Array:
        nulls = int(self._lookup.null_counts[page])
        if values.null_count != nulls or values[nulls:].null_count:
            path = self._folder.file(self._lookup.part_of(page).name).path
            msg = f"index file {path}: page {page} does not start with its {nulls} nulls"
            raise CorruptTableError(msg, path=path)
        return key_order.keys_of(values[nulls:])

    def _read_pages(
        self, pages: Sequence[int], *, only_ids: bool = False
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read pages, or their row ids alone; those near each other are read together."""
        size = self._lookup.page_rows
        for part, run in self._runs(pages):
            reader = self.reader(part)
            number, stop = run[0], run[-1] + 1
            batches = reader.batches(
                (number - part.first) * size,
                (stop - part.first) * size,
                batch_rows=size * _PAGES_AT_ONCE,
                columns=(build.ids_name(reader.schema),) if only_ids else None,
            )
            wanted = set(run)
            for batch in batches:
                reader.require(build.VALUES, build.ids_name(reader.schema))
                for start in range(0, batch.num_rows, size):
                    if number in wanted:
                        page = batch.slice(start, size)
                        yield number, page if len(run) == 1 else _copy(page)
                    number += 1

    def _runs(self, pages: Sequence[int]) -> Iterator[tuple[PageFile, list[int]]]:
        """Group pages of the same file that are near each other."""
        run: list[int] = []
        part: PageFile | None = None
        for page in sorted(pages):
            if part is not None and (
                page - run[-1] > _MOST_SKIPPED + 1 or page >= part.first + part.pages
            ):
                yield part, run
                part = None
            if part is None:
                part, run = self._lookup.part_of(page), []
            run.append(page)
        if part is not None:
            yield part, run

    def _read_nulls(self) -> RowIds:
        counts = self._lookup.null_counts
        pages = np.flatnonzero(counts).tolist()
        if not pages:
            return EMPTY
        ids = self.ids(pages)
        return RowIds.of(np.concatenate([a[: counts[p]] for p, a in zip(pages, ids, strict=True)]))


def _copy(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that do not keep those around them in memory."""
    columns = [pa.concat_arrays([column]) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def has_stale_bounds(folder: SegmentFolder, lookup: Lookup) -> bool:
    """Whether pages have other nulls, or greater values, than the lookup table says.

    Reads at most three values of each page.
    """
    parts = (part for part in lookup.parts if part.pages)
    return any(_is_stale(build.open_file(folder, part.name), lookup, part) for part in parts)


def _is_stale(reader: IndexFileReader, lookup: Lookup, part: PageFile) -> bool:
    size = lookup.page_rows
    if -(-reader.num_rows // size) != part.pages:
        return True
    reader.require(build.VALUES)
    numbers = np.arange(part.first, part.first + part.pages)
    starts = np.arange(part.pages) * size
    ends = np.minimum(starts + size, reader.num_rows)
    firsts = starts + lookup.null_counts[numbers]
    has_values = firsts < ends
    if (firsts > ends).any() or not np.isin(numbers[has_values], lookup.numbers).all():
        return True
    nulls = _values(reader, firsts[firsts > starts] - 1)
    if nulls.null_count < len(nulls) or _values(reader, firsts[has_values]).null_count:
        return True
    greatest = _values(reader, ends[has_values] - 1)
    if greatest.null_count:
        return True
    bounds = lookup.greatest.take(pa.array(_places(lookup)[numbers[has_values]]))
    return pc.all(pc.less_equal(key_order.keys_of(greatest), bounds)).as_py() is False


def _places(lookup: Lookup) -> key_order.Positions:
    """Return the position of each page among those with values."""
    places = np.zeros(lookup.num_pages, dtype=np.int64)
    places[lookup.numbers] = np.arange(len(lookup.numbers))
    return places


def _values(reader: IndexFileReader, rows: key_order.Positions) -> pa.Array:
    column = reader.take(rows.tolist(), columns=[build.VALUES]).column(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
