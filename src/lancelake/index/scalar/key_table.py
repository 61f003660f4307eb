"""Key table: reader of index files with a set of rows for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader
from lancelake.index import cache
from lancelake.index.kind import SegmentFacts
from lancelake.index.order import Key, Positions, keys_of, search, sort_positions
from lancelake.index.row_ids import RowIds, decode_tree_map, split_parts, union
from lancelake.index.scalar.keyed_sets import (
    BITMAPS,
    FILE,
    KEYS,
    NULL_LISTS,
    STATISTICS,
    KeyedSet,
)
from lancelake.index.scalar.stored_sets import KeyedStoredSet, StoredSet, stored_set

T = TypeVar("T")

_BATCH_ROWS = 1024
_BYTES_PER_KEY = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """The values that have a set, in the order of the file, and that order by key."""

    values: pa.Array
    order: Positions
    """Rows of the file by their key; the null key comes first."""
    keys: pa.Array = field(repr=False)
    """The keys in that order, without a null."""

    @property
    def null_row(self) -> int | None:
        """The row of the null key."""
        return int(self.order[0]) if len(self.order) > len(self.keys) else None

    def rows_of(self, wanted: pa.Array) -> list[int | None]:
        """Return the row of each wanted value; None for one that has no set."""
        keys = keys_of(wanted)
        places = iter(search(self.keys, keys.drop_null(), "left").tolist())
        nulls = len(self.order) - len(self.keys)
        found: list[int | None] = []
        for key in keys:
            if not key.is_valid:
                found.append(self.null_row)
                continue
            place = next(places)
            is_known = place < len(self.keys) and self.keys[place].as_py() == key.as_py()
            found.append(int(self.order[nulls + place]) if is_known else None)
        return found


class KeyTable:
    """The sets of rows of a segment, by key."""

    def __init__(self, facts: SegmentFacts, dtype: pa.DataType) -> None:
        self._facts = facts
        self._dtype = dtype
        self._place = facts.folder.file(FILE)
        self._uri = self._place.uri
        self._opened: IndexFileReader | None = None

    @property
    def column(self) -> KeyColumn:
        """The keys."""
        return cache.kept(self._uri, KEYS, self._column, _column_size)

    def rows(self, rows: Iterable[int]) -> RowIds:
        """Return the rows of the table that any of these rows of the file name."""
        found: list[RowIds] = []
        missing: list[int] = []
        for row in rows:
            kept = cache.find(self._uri, (BITMAPS, row))
            if isinstance(kept, RowIds):
                found.append(kept)
            else:
                missing.append(row)
        missing.sort()
        for start in range(0, len(missing), _BATCH_ROWS):
            some = missing[start : start + _BATCH_ROWS]
            sets = self._decoded(self._read(some))
            for row, ids in zip(some, sets, strict=True):
                cache.keep(self._uri, (BITMAPS, row), ids, ids.size_bytes)
            # One set for keys that do not fit into the cache.
            found = [union([*found, *sets])]
        return union(found)

    def null_lists(self) -> RowIds | None:
        """Return the rows whose list is null; None if the segment does not store them."""
        if NULL_LISTS not in self._reader.metadata:
            return None
        return cache.kept(self._uri, NULL_LISTS, self._null_lists, lambda ids: ids.size_bytes)

    def early_rows(self) -> RowIds | None:
        """Return the rows of all sets that a release before 2.0 wrote; None for others."""
        if STATISTICS in self._reader.metadata:
            return None
        every = range(len(self.column.order))
        return cache.kept(self._uri, "all rows", lambda: self.rows(every), lambda x: x.size_bytes)

    def sets(self) -> Iterator[KeyedSet]:
        """Yield all keys with their rows, in key order."""
        return self._by_key(self._set)

    def stored_sets(self) -> Iterator[KeyedStoredSet]:
        """Yield all keys with their rows as the file stores them, in key order."""
        return self._by_key(self._parts)

    def _by_key(self, read: Callable[[bytes | None], T]) -> Iterator[tuple[Key | None, T]]:
        column = self.column
        nulls = len(column.order) - len(column.keys)
        for start in range(0, len(column.order), _BATCH_ROWS):
            rows = column.order[start : start + _BATCH_ROWS]
            places = np.argsort(rows)
            data = self._read(rows[places].tolist()).column(0).to_pylist()
            in_order = dict(zip(places.tolist(), data, strict=True))
            keys = column.keys[max(0, start - nulls) : max(0, start + len(rows) - nulls)]
            known = [None] * (len(rows) - len(keys)) + keys.to_pylist()
            for place, key in enumerate(known):
                yield key, read(in_order.pop(place))

    @property
    def _reader(self) -> IndexFileReader:
        if self._opened is None:
            self._opened = cache.kept(
                self._uri, "reader", lambda: self._facts.folder.open(FILE), lambda _: 0
            )
            self._opened.require(KEYS, BITMAPS)
        return self._opened

    def _column(self) -> KeyColumn:
        chunks = self._reader.read(columns=[KEYS]).column(0).chunks
        values = pa.concat_arrays(chunks) if chunks else pa.array([], self._dtype)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        keys = keys_of(values)
        order = sort_positions(keys)
        ascending = keys.take(pa.array(order))[keys.null_count :]
        return KeyColumn(values=values, order=order, keys=ascending)

    def _read(self, rows: Sequence[int]) -> pa.Table:
        is_run = rows[-1] - rows[0] + 1 == len(rows)
        if is_run:
            return self._reader.read(rows[0], rows[-1] + 1, columns=[BITMAPS])
        return self._reader.take(rows, columns=[BITMAPS])

    def _decoded(self, table: pa.Table) -> list[RowIds]:
        return [self._set(data) for data in table.column(0).to_pylist()]

    def _set(self, data: bytes | None) -> RowIds:
        rows_of = self._facts.fragment_rows
        return decode_tree_map(data or b"", rows_of=rows_of, what=self._what)

    @property
    def _what(self) -> str:
        return f"row ids of index file {self._place.path}"

    def _parts(self, data: bytes | None) -> StoredSet:
        parts = split_parts(data or b"", what=self._what)
        # An entry without bytes means all rows of a fragment.
        return parts if all(parts.values()) else stored_set(self._set(data))

    def _null_lists(self) -> RowIds:
        return self._set(self._reader.buffer(NULL_LISTS))


def _column_size(column: KeyColumn) -> int:
    return int(column.values.nbytes * 2 + len(column.order) * _BYTES_PER_KEY)
