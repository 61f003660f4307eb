"""Pages of a BTREE: sorted keys and row ids, loaded on demand and cached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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
        self._uri = folder.uri

    def read(self, pages: Sequence[int]) -> Iterator[BTreePage]:
        """Yield pages, each of which is asked for once, in any order."""
        all_keys = cache.find_all(self._uri, [(files.VALUES, page) for page in pages])
        all_ids = cache.find_all(self._uri, [(files.IDS, page) for page in pages])
        missing: dict[int, int] = {}
        for place, (keys, ids) in enumerate(zip(all_keys, all_ids, strict=True)):
            if isinstance(keys, pa.Array) and isinstance(ids, np.ndarray):
                yield BTreePage(place, keys, ids)
            else:
                missing[pages[place]] = place
        is_kept = len(missing) <= MOST_KEPT
        for number, batch in self._stored(list(missing), columns=None):
            keys = self._keys(number, batch.column(files.VALUES))
            ids = batch.column(files.IDS).to_numpy()
            if is_kept:
                cache.keep(self._uri, (files.VALUES, number), keys, int(keys.nbytes))
                cache.keep(self._uri, (files.IDS, number), ids, ids.nbytes)
            yield BTreePage(missing[number], keys, ids)

    def ids(self, pages: Sequence[int]) -> list[U64Array]:
        """Return the row ids of pages, those of nulls before the others."""
        all_kept = cache.find_all(self._uri, [(files.IDS, page) for page in pages])
        found = {
            page: kept
            for page, kept in zip(pages, all_kept, strict=True)
            if isinstance(kept, np.ndarray)
        }
        missing = [page for page in pages if page not in found]
        for number, batch in self._stored(missing, columns=(files.IDS,)):
            ids = found[number] = batch.column(0).to_numpy()
            if len(missing) <= MOST_KEPT:
                cache.keep(self._uri, (files.IDS, number), ids, ids.nbytes)
        return [found[page] for page in pages]

    def nulls(self) -> RowIds:
        """Return the rows that are null."""
        return cache.kept(self._uri, _NULLS, self._read_nulls, lambda ids: ids.size_bytes)

    def reader(self, part: PageFile) -> IndexFileReader:
        """Return the file of a part, with as many rows as its pages need."""
        return cache.kept(self._uri, part, lambda: self._open(part), lambda _: 0)

    def _open(self, part: PageFile) -> IndexFileReader:
        reader = self._folder.open(part.name)
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
        return keys_of(values[nulls:])

    def _stored(
        self, pages: Sequence[int], columns: tuple[str, ...] | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Read pages with all columns or some; those near each other are read together."""
        size = self._lookup.page_rows
        for part, run in self._runs(pages):
            reader = self.reader(part)
            number, stop = run[0], run[-1] + 1
            batches = reader.batches(
                (number - part.first) * size,
                (stop - part.first) * size,
                batch_rows=size * _PAGES_AT_ONCE,
                columns=columns,
            )
            wanted = set(run)
            for batch in batches:
                reader.require(files.VALUES, files.IDS)
                for start in range(0, batch.num_rows, size):
                    if number in wanted:
                        page = batch.slice(start, size)
                        yield number, page if len(run) == 1 else _copied(page)
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


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that do not keep those around them in memory."""
    columns = [pa.concat_arrays([column]) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
