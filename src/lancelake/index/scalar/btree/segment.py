"""Search of BTREE segments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.expr.condition import Comparison, IsNull, Leaf, Membership, Operator
from lancelake.index import cache
from lancelake.index.answer import Answer
from lancelake.index.key_range import KeyPoints, KeyRange, place_of, points_of, range_of
from lancelake.index.kind import (
    CountableSegment,
    Parameters,
    PointSegment,
    RangeSegment,
    SegmentFacts,
)
from lancelake.index.order import Positions
from lancelake.index.row_ids import EMPTY, RowIds, U64Array
from lancelake.index.scalar.btree import files
from lancelake.index.scalar.btree.lookup import Lookup, PageFile, open_lookup
from lancelake.index.scalar.btree.pages import MOST_KEPT, Pages
from lancelake.index.scalar.btree.stale_bounds import has_stale_bounds
from lancelake.index.scalar.shown_value import shown_value
from lancelake.index.sort import row_schema, value_sorted

_STALE = "has stale bounds"


class BTreeSegment(CountableSegment, RangeSegment, PointSegment):
    """A BTREE that can be searched; its files are opened by the first search."""

    def __init__(self, facts: SegmentFacts) -> None:
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
                found = self.answer(equal)
                return None if found is None else ~found
            case Membership():
                return self._membership(leaf)
            case _:
                wanted = range_of(leaf)
                return None if wanted is None else self.answer_range(wanted)

    def answer_range(self, wanted: KeyRange) -> Answer:
        """Search a condition that is true for the keys of a range."""
        lookup = self.lookup
        pages = Pages(self._folder, lookup)
        first, end = lookup.near(wanted)
        if _is_most(end - first, lookup) and (others := _complement(wanted)) is not None:
            return ~Answer.exact(_set(self._range(lookup, pages, others)), pages.nulls())
        return Answer.exact(_set(self._range(lookup, pages, wanted)), pages.nulls())

    def ids_in_range(self, wanted: KeyRange) -> U64Array:
        """Return the row ids of the keys of a range, in any order."""
        found = self._range(self.lookup, self._pages(), wanted)
        return np.concatenate(found) if found else np.zeros(0, dtype=np.uint64)

    def rows_at(self, wanted: KeyPoints) -> tuple[Positions, U64Array]:
        """Return the rows with one of several keys: the number of the key, and the row id."""
        points, found = self._points(self.lookup, self._pages(), wanted)
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        return np.repeat(points, [len(ids) for ids in found]), np.concatenate(found)

    def num_entries(self) -> int:
        """Return how many values and nulls are indexed."""
        pages = self._pages()
        return sum(pages.reader(part).num_rows for part in self.lookup.parts if part.pages)

    def has_stale_bounds(self) -> bool:
        """Whether pages have rows outside of their bounds."""
        folder, lookup = self._folder, self.lookup
        return cache.kept(folder.uri, _STALE, lambda: has_stale_bounds(folder, lookup), lambda _: 0)

    def share_read(self, wanted: KeyRange) -> float:
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
        reader.require(files.VALUES, files.IDS)
        for batch in reader.batches(columns=[files.VALUES, files.IDS]):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def statistics(self) -> Mapping[str, Any]:
        """Return the bounds of the values, and the number of pages."""
        lookup = self.lookup
        if not lookup.num_pages:
            return {}
        low, high = ("N/A" if v is None else shown_value(v) for v in (lookup.min, lookup.max))
        return {"min": low, "max": high, "num_pages": lookup.num_pages}

    def parameters(self) -> Parameters:
        """Return the number of rows of a page."""
        return {files.PAGE_ROWS_PARAMETER: self.lookup.page_rows}

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
        found = _set(self._points(self.lookup, pages, points_of(leaf.values))[1])
        # What is not found in a list with a null is unknown.
        return Answer.never_false(found) if leaf.has_null else Answer.exact(found, pages.nulls())

    def _range(self, lookup: Lookup, pages: Pages, wanted: KeyRange) -> list[U64Array]:
        first, end = lookup.near(wanted)
        start, stop = lookup.inside(wanted)
        inside = range(start, min(end, stop)) if start < min(end, stop) else range(first, first)
        border = [*range(first, inside.start), *range(inside.stop, end)]
        found: list[U64Array] = []
        for _, keys, ids in pages.read(lookup.numbers[border].tolist()):
            low = place_of(keys, wanted.lower, 0)
            high = place_of(keys, wanted.upper, len(keys))
            nulls = len(ids) - len(keys)
            found.append(ids[nulls + low : nulls + high])
        return found + pages.ids(lookup.numbers[inside.start : inside.stop].tolist())

    def _points(
        self, lookup: Lookup, pages: Pages, wanted: KeyPoints
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
        found: list[U64Array] = []
        for place, keys, ids in pages.read(numbers):
            low, high = wanted.places(keys, starts[place], stops[place])
            nulls = len(ids) - len(keys)
            for point, (a, b) in enumerate(zip(low, high, strict=True), starts[place]):
                if a < b:
                    points.append(point)
                    found.append(ids[nulls + a : nulls + b])
        return points, found


def _is_most(pages: int, lookup: Lookup) -> bool:
    """Whether pages are most of all, so that the others are faster to read."""
    return pages > lookup.num_pages // 2


def _complement(wanted: KeyRange) -> KeyRange | None:
    """Return the keys outside a range that is open on one side."""
    if wanted.lower is None and wanted.upper is not None:
        return KeyRange(lower=wanted.upper)
    if wanted.upper is None and wanted.lower is not None:
        return KeyRange(upper=wanted.lower)
    return None


def _set(found: Sequence[U64Array]) -> RowIds:
    return RowIds.of(np.concatenate(found)) if found else EMPTY
