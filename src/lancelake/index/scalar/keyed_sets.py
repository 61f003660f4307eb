"""Sets of rows by key: file, table of keys, stored bitmaps.

A set is a bitmap for each high word of its row ids. Bitmaps that do not change stay encoded: a
refresh leaves most of them as they are.

A null key comes first.
"""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.format.deletion import decode_bitmap
from lancelake.format.index_meta import IndexFile
from lancelake.format.row_address import upper_bound
from lancelake.index import cache, kind, row_sets
from lancelake.index import order as key_order
from lancelake.index.sort import row_schema

StoredSet: TypeAlias = Mapping[int, bytes]
"""The encoded bitmap of each high word."""
KeyedStoredSet: TypeAlias = tuple[key_order.Key | None, StoredSet]


def is_list(dtype: pa.DataType) -> bool:
    """Whether the keys of a column are the elements of its lists."""
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype))


def encode_sets(
    sets: Iterable[tuple[key_order.Key | None, row_sets.RowIds]],
) -> Iterator[KeyedStoredSet]:
    """Encode the rows of each key."""
    for key, ids in sets:
        yield key, encode_set(ids)


def encode_set(ids: row_sets.RowIds) -> StoredSet:
    """Encode a set."""
    return {high: _encode(part) for high, part in ids.parts.items()}


def merge_sets(streams: Sequence[Iterable[KeyedStoredSet]]) -> Iterator[KeyedStoredSet]:
    """Yield the rows of each key of any stream; a null key comes first."""
    if len(streams) == 1:
        yield from streams[0]
        return
    together = heapq.merge(*streams, key=lambda item: (item[0] is not None, item[0]))
    for key, same in itertools.groupby(together, key=lambda item: item[0]):
        yield key, _union([parts for _, parts in same])


def restrict(
    sets: Iterable[KeyedStoredSet], wanted: row_sets.RowIds | None
) -> Iterator[KeyedStoredSet]:
    """Yield the rows of each key that are in a set, all where there is none."""
    if wanted is None:
        yield from sets
        return
    ends = {high: _end(part) for high, part in wanted.parts.items()}
    for key, parts in sets:
        left: dict[int, bytes] = {}
        for high, data in parts.items():
            if high not in ends:
                continue
            common = data if _is_below(data, ends[high]) else _common(data, wanted.parts[high])
            if common:
                left[high] = common
        if left:
            yield key, left


def _end(part: BitMap) -> int:
    """Return the end of a bitmap of all numbers below it; 0 for any other bitmap."""
    return len(part) if part.max() == len(part) - 1 else 0


def _is_below(data: bytes, end: int) -> bool:
    if not end:
        return False
    try:
        bound = upper_bound(data)
    except ValueError:
        return False  # decoding reports the damage
    return bound is not None and bound < end


def _common(data: bytes, wanted: BitMap) -> bytes:
    common = _decode(data) & wanted
    return _encode(common) if common else b""


def _union(sets: Sequence[StoredSet]) -> StoredSet:
    if len(sets) == 1:
        return sets[0]
    parts: dict[int, list[bytes]] = {}
    for each in sets:
        for high, data in each.items():
            parts.setdefault(high, []).append(data)
    return {
        high: same[0] if len(same) == 1 else _encode(BitMap.union(*map(_decode, same)))
        for high, same in parts.items()
    }


def _decode(data: bytes) -> BitMap:
    return decode_bitmap(data, what="row ids of an index file")


def _encode(part: BitMap) -> bytes:
    return bytes(part.serialize())


FILE = "bitmap_page_lookup.lance"
KEYS, BITMAPS = "keys", "bitmaps"
STATISTICS = "lance:index_stats"
NULL_LISTS = "lance:label_list_nulls"

# A batch of the file ends with the set that exceeds one of these.
_BATCH_KEYS = 4096
_BATCH_BYTES = 8 << 20

KeyedSet = tuple[key_order.Key | None, row_sets.RowIds]


def group(batches: Iterable[pa.RecordBatch]) -> Iterator[KeyedSet]:
    """Yield the rows of each key, of batches in value order; those of one key are in memory."""
    runs = (run for batch in batches for run in _runs(batch))
    for key, parts in itertools.groupby(runs, key=lambda run: run[0]):
        ids = [part for _, part in parts]
        yield key, row_sets.RowIds.of(ids[0] if len(ids) == 1 else np.concatenate(ids))


def map_sets(sets: Iterable[KeyedSet], row_map: kind.RowMap) -> Iterator[KeyedSet]:
    """Yield the rows of each key with their new ids, without removed rows."""
    for key, ids in sets:
        left = map_ids(ids, row_map)
        if left:
            yield key, left


def map_ids(ids: row_sets.RowIds, row_map: kind.RowMap) -> row_sets.RowIds:
    """Return the new ids of remaining rows."""
    if not ids:
        return row_sets.EMPTY
    moved = row_map(ids.to_array())
    return row_sets.RowIds.of(moved[moved != np.uint64(kind.DROPPED)])


def write_sets(
    folder: SegmentFolder,
    dtype: pa.DataType,
    sets: Iterable[KeyedStoredSet],
    *,
    null_lists: Callable[[], row_sets.RowIds] | None = None,
) -> IndexFile:
    """Write sets in key order, and then the rows whose list is null, for an index of lists."""
    schema = pa.schema([pa.field(KEYS, dtype), pa.field(BITMAPS, pa.binary())])
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    writer = folder.create(FILE, schema)
    count = 0
    for keys, bitmaps in _batch(sets):
        values = key_order.values_of(key_order.key_array(keys, plain), plain)
        columns = [values.cast(dtype), pa.array(bitmaps, pa.binary())]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
        count += len(keys)
    metadata = {STATISTICS: json.dumps({"num_bitmaps": count}, separators=(",", ":"))}
    if null_lists is not None:
        metadata[NULL_LISTS] = str(writer.add_buffer(row_sets.encode_tree_map(null_lists())))
    return writer.finish(metadata)


def _batch(
    sets: Iterable[KeyedStoredSet],
) -> Iterator[tuple[list[key_order.Key | None], list[bytes]]]:
    keys: list[key_order.Key | None] = []
    bitmaps: list[bytes] = []
    size = 0
    for key, parts in sets:
        data = row_sets.join_parts(parts)
        keys.append(key)
        bitmaps.append(data)
        size += len(data)
        if size > _BATCH_BYTES or len(keys) == _BATCH_KEYS:
            yield keys, bitmaps
            keys, bitmaps, size = [], [], 0
    if keys:
        yield keys, bitmaps


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[key_order.Key | None, row_sets.U64Array]]:
    """Yield the row ids of each key of a batch in value order."""
    keys, ids = key_order.keys_of(batch.column(kind.VALUE)), batch.column(kind.ROW_ID).to_numpy()
    nulls = keys.null_count
    if nulls:
        yield None, ids[:nulls]
    keys, ids = keys[nulls:], ids[nulls:]
    if not len(keys):
        return
    starts = np.concatenate([np.zeros(1, dtype=np.int64), key_order.changes(keys)])
    first = keys.take(pa.array(starts)).to_pylist()
    bounds = itertools.pairwise([*starts.tolist(), len(ids)])
    for key, (start, stop) in zip(first, bounds, strict=True):
        yield key, ids[start:stop]


T = TypeVar("T")

_BATCH_ROWS = 1024
_BYTES_PER_KEY = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """The values that have a set, in the order of the file, and that order by key."""

    values: pa.Array
    order: key_order.Positions
    """Rows of the file by their key; the null key comes first."""
    keys: pa.Array = field(repr=False)
    """The keys in that order, without a null."""

    @property
    def null_row(self) -> int | None:
        """The row of the null key."""
        return int(self.order[0]) if len(self.order) > len(self.keys) else None

    def rows_of(self, wanted: pa.Array) -> list[int | None]:
        """Return the row of each wanted value; None for one that has no set."""
        keys = key_order.keys_of(wanted)
        places = iter(key_order.search(self.keys, keys.drop_null(), "left").tolist())
        nulls = len(self.order) - len(self.keys)
        rows: list[int | None] = []
        for key in keys:
            if not key.is_valid:
                rows.append(self.null_row)
                continue
            place = next(places)
            is_there = place < len(self.keys) and self.keys[place].as_py() == key.as_py()
            rows.append(int(self.order[nulls + place]) if is_there else None)
        return rows


class KeyTable:
    """The sets of rows of a segment, by key."""

    def __init__(self, facts: kind.SegmentFacts, dtype: pa.DataType) -> None:
        self._facts = facts
        self._dtype = dtype
        self._place = facts.folder.file(FILE)
        self._uri = cache.of(self._place)
        self._opened: IndexFileReader | None = None

    @property
    def column(self) -> KeyColumn:
        """The keys."""
        return cache.kept(self._uri, KEYS, self._column, _column_size)

    def rows(self, rows: Iterable[int]) -> row_sets.RowIds:
        """Return the rows of the table that any of these rows of the file name."""
        parts: list[row_sets.RowIds] = []
        missing: list[int] = []
        for row in rows:
            cached = cache.find(self._uri, (BITMAPS, row))
            if isinstance(cached, row_sets.RowIds):
                parts.append(cached)
            else:
                missing.append(row)
        if missing:
            cache.count_loaded(len(missing) - (self.column.null_row in missing))
        missing.sort()
        for start in range(0, len(missing), _BATCH_ROWS):
            some = missing[start : start + _BATCH_ROWS]
            sets = [self._set(data) for data in self._read(some).column(0).to_pylist()]
            for row, ids in zip(some, sets, strict=True):
                cache.keep(self._uri, (BITMAPS, row), ids, ids.size_bytes)
            # One set for keys that do not fit into the cache.
            parts = [row_sets.union([*parts, *sets])]
        return row_sets.union(parts)

    def null_lists(self) -> row_sets.RowIds | None:
        """Return the rows whose list is null; None if the segment does not store them."""
        if NULL_LISTS not in self._reader.metadata:
            return None
        return cache.kept(self._uri, NULL_LISTS, self._null_lists, lambda ids: ids.size_bytes)

    def early_rows(self) -> row_sets.RowIds | None:
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

    def _by_key(
        self, read: Callable[[bytes | None], T]
    ) -> Iterator[tuple[key_order.Key | None, T]]:
        column = self.column
        nulls = len(column.order) - len(column.keys)
        for start in range(0, len(column.order), _BATCH_ROWS):
            rows = column.order[start : start + _BATCH_ROWS]
            places = np.argsort(rows)
            data = self._read(rows[places].tolist()).column(0).to_pylist()
            in_order = dict(zip(places.tolist(), data, strict=True))
            keys = column.keys[max(0, start - nulls) : max(0, start + len(rows) - nulls)]
            for place, key in enumerate([None] * (len(rows) - len(keys)) + keys.to_pylist()):
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
        keys = key_order.keys_of(values)
        order = key_order.sort_positions(keys)
        ascending = keys.take(pa.array(order))[keys.null_count :]
        return KeyColumn(values=values, order=order, keys=ascending)

    def _read(self, rows: Sequence[int]) -> pa.Table:
        is_run = rows[-1] - rows[0] + 1 == len(rows)
        if is_run:
            return self._reader.read(rows[0], rows[-1] + 1, columns=[BITMAPS])
        return self._reader.take(rows, columns=[BITMAPS])

    def _set(self, data: bytes | None) -> row_sets.RowIds:
        rows_of = self._facts.fragment_rows
        return row_sets.decode_tree_map(data or b"", rows_of=rows_of, what=self._what)

    @property
    def _what(self) -> str:
        return f"row ids of index file {self._place.path}"

    def _parts(self, data: bytes | None) -> StoredSet:
        parts = row_sets.split_parts(data or b"", what=self._what)
        # An entry without bytes means all rows of a fragment.
        return parts if all(parts.values()) else encode_set(self._set(data))

    def _null_lists(self) -> row_sets.RowIds:
        return self._set(self._reader.buffer(NULL_LISTS))


def _column_size(column: KeyColumn) -> int:
    return int(column.values.nbytes * 2 + len(column.order) * _BYTES_PER_KEY)


class KeyedSegment(kind.OpenSegment):
    """A segment with a set of rows for each key."""

    def __init__(self, facts: kind.SegmentFacts, dtype: pa.DataType) -> None:
        self._table = KeyTable(facts, dtype)
        self._dtype = dtype

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream all keys and row ids in key order."""
        schema = row_schema(self._dtype)
        for key, ids in self.sets():
            rows = ids.to_array()
            value = key_order.values_of(key_order.key_array([key], self._dtype), self._dtype)
            values = value.take(pa.array(np.zeros(len(rows), dtype=np.int64)))
            yield pa.RecordBatch.from_arrays([values, pa.array(rows)], schema=schema)

    def sets(self) -> Iterator[KeyedSet]:
        """Stream the keys with their rows in key order."""
        return self._table.sets()

    def stored_sets(self) -> Iterator[KeyedStoredSet]:
        """Stream the keys with their rows as the file stores them, in key order."""
        return self._table.stored_sets()

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of sets."""
        return {"num_bitmaps": len(self._table.column.order)}

    def prewarm(self) -> None:
        """Read the keys, and the rows of each."""
        self._table.rows(range(len(self._table.column.order)))
