"""Pages of a BTREE: sorted keys and row ids, loaded on demand and cached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.errors import CorruptTableError
from lancelake.index import cache
from lancelake.index.order import keys_of
from lancelake.index.row_ids import EMPTY, RowIds, U64Array
from lancelake.index.scalar.btree import files
from lancelake.index.scalar.btree.lookup import Lookup, PageFile

# More pages are not cached: a search of this size is rare, and would evict the others.
MOST_KEPT = 4096
_NULLS = "nulls"


class Pages:
    """The pages of a segment, by number."""

    def __init__(self, folder: SegmentFolder, lookup: Lookup) -> None:
        self._folder = folder
        self._lookup = lookup
        self._uri = folder.place.uri

    def keys(self, pages: Sequence[int]) -> Iterator[pa.Array]:
        """Yield the keys of the values of pages, ascending, without the nulls before them."""
        parts = [(files.VALUES, page) for page in pages]
        for part, kept in zip(parts, cache.find_all(self._uri, parts), strict=True):
            if isinstance(kept, pa.Array):
                yield kept
                continue
            keys = self._keys(part[1])
            cache.keep(self._uri, part, keys, int(keys.nbytes))
            yield keys

    def ids(self, pages: Sequence[int]) -> list[U64Array]:
        """Return the row ids of pages, those of nulls before the others."""
        found: dict[int, U64Array] = {}
        missing: list[int] = []
        all_kept = cache.find_all(self._uri, [(files.IDS, page) for page in pages])
        for page, kept in zip(pages, all_kept, strict=True):
            if isinstance(kept, np.ndarray):
                found[page] = kept
            else:
                missing.append(page)
        for run in _runs(missing):
            found.update(self._read_ids(run))
        return [found[page] for page in pages]

    def nulls(self) -> RowIds:
        """Return the rows that are null."""
        return cache.kept(self._uri, _NULLS, self._read_nulls, lambda ids: ids.size_bytes)

    def reader(self, part: PageFile) -> IndexFileReader:
        """Return the file of a part, with as many rows as its pages need."""
        return cache.kept(self._uri, part, lambda: self._open(part), lambda _: 0)

    def _open(self, part: PageFile) -> IndexFileReader:
        reader = self._folder.open(part.name)
        reader.require(files.VALUES, files.IDS)
        if -(-reader.num_rows // self._lookup.page_rows) != part.pages:
            path = self._folder.file(part.name).path
            msg = f"index file {path} has {reader.num_rows} rows for {part.pages} pages"
            raise CorruptTableError(msg, path=path)
        return reader

    def _keys(self, page: int) -> pa.Array:
        part = self._lookup.part_of(page)
        start, stop = self._rows(part, page, 1)
        table = self.reader(part).read(start, stop, columns=[files.VALUES])
        values = pa.concat_arrays(table.column(0).chunks)
        nulls = int(self._lookup.null_counts[page])
        if values.null_count != nulls or values[nulls:].null_count:
            path = self._folder.file(part.name).path
            msg = f"index file {path}: page {page} does not start with its {nulls} nulls"
            raise CorruptTableError(msg, path=path)
        return keys_of(values[nulls:])

    def _read_ids(self, run: range) -> Iterator[tuple[int, U64Array]]:
        """Read the row ids of consecutive pages, file by file."""
        at, size = run.start, self._lookup.page_rows
        is_kept = len(run) <= MOST_KEPT
        while at < run.stop:
            part = self._lookup.part_of(at)
            count = min(run.stop, part.first + part.pages) - at
            start, stop = self._rows(part, at, count)
            table = self.reader(part).read(start, stop, columns=[files.IDS])
            ids = np.concatenate([chunk.to_numpy() for chunk in table.column(0).chunks])
            for place in range(count):
                page_ids = ids[place * size : (place + 1) * size]
                if is_kept:
                    page_ids = page_ids.copy()
                    cache.keep(self._uri, (files.IDS, at + place), page_ids, page_ids.nbytes)
                yield at + place, page_ids
            at += count

    def _read_nulls(self) -> RowIds:
        counts = self._lookup.null_counts
        pages = np.flatnonzero(counts).tolist()
        if not pages:
            return EMPTY
        ids = self.ids(pages)
        return RowIds.of(np.concatenate([a[: counts[p]] for p, a in zip(pages, ids, strict=True)]))

    def _rows(self, part: PageFile, page: int, count: int) -> tuple[int, int]:
        start = (page - part.first) * self._lookup.page_rows
        return start, start + count * self._lookup.page_rows


def _runs(pages: Sequence[int]) -> Iterator[range]:
    """Group page numbers into runs without gaps."""
    numbers = sorted(pages)
    start = 0
    for place in range(1, len(numbers) + 1):
        if place == len(numbers) or numbers[place] != numbers[place - 1] + 1:
            yield range(numbers[start], numbers[place - 1] + 1)
            start = place
