"""Streams of row sets by key: group, remap and write.

A null key comes first.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format.index_meta import IndexFile
from lancelake.index.kind import DROPPED, ROW_ID, VALUE, RowMap
from lancelake.index.order import Key, changes, key_array, keys_of, values_of
from lancelake.index.row_ids import EMPTY, RowIds, U64Array, encode_tree_map, join_parts
from lancelake.index.scalar.stored_sets import KeyedStoredSet

FILE = "bitmap_page_lookup.lance"
KEYS, BITMAPS = "keys", "bitmaps"
STATISTICS = "lance:index_stats"
NULL_LISTS = "lance:label_list_nulls"

# A batch of the file ends with the set that exceeds one of these.
_BATCH_KEYS = 4096
_BATCH_BYTES = 8 << 20

KeyedSet = tuple[Key | None, RowIds]


def grouped(batches: Iterable[pa.RecordBatch]) -> Iterator[KeyedSet]:
    """Yield the rows of each key, of batches in value order; those of one key are in memory."""
    runs = (run for batch in batches for run in _runs(batch))
    for key, parts in itertools.groupby(runs, key=lambda run: run[0]):
        ids = [part for _, part in parts]
        yield key, RowIds.of(ids[0] if len(ids) == 1 else np.concatenate(ids))


def mapped(sets: Iterable[KeyedSet], row_map: RowMap) -> Iterator[KeyedSet]:
    """Yield the rows of each key with their new ids, without removed rows."""
    for key, ids in sets:
        left = mapped_ids(ids, row_map)
        if left:
            yield key, left


def mapped_ids(ids: RowIds, row_map: RowMap) -> RowIds:
    """Return the new ids of remaining rows."""
    if not ids:
        return EMPTY
    found = row_map(ids.to_array())
    return RowIds.of(found[found != np.uint64(DROPPED)])


def write_sets(
    folder: SegmentFolder,
    dtype: pa.DataType,
    sets: Iterable[KeyedStoredSet],
    *,
    null_lists: Callable[[], RowIds] | None = None,
) -> IndexFile:
    """Write sets in key order, and then the rows whose list is null, for an index of lists."""
    schema = pa.schema([pa.field(KEYS, dtype), pa.field(BITMAPS, pa.binary())])
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    writer = folder.create(FILE, schema)
    count = 0
    for keys, bitmaps in _batched(sets):
        values = values_of(key_array(keys, plain), plain)
        columns = [values.cast(dtype), pa.array(bitmaps, pa.binary())]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=schema))
        count += len(keys)
    metadata = {STATISTICS: json.dumps({"num_bitmaps": count}, separators=(",", ":"))}
    if null_lists is not None:
        metadata[NULL_LISTS] = str(writer.add_buffer(encode_tree_map(null_lists())))
    return writer.finish(metadata)


def _batched(sets: Iterable[KeyedStoredSet]) -> Iterator[tuple[list[Key | None], list[bytes]]]:
    keys: list[Key | None] = []
    bitmaps: list[bytes] = []
    size = 0
    for key, parts in sets:
        data = join_parts(parts)
        keys.append(key)
        bitmaps.append(data)
        size += len(data)
        if size > _BATCH_BYTES or len(keys) == _BATCH_KEYS:
            yield keys, bitmaps
            keys, bitmaps, size = [], [], 0
    if keys:
        yield keys, bitmaps


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[Key | None, U64Array]]:
    """Yield the row ids of each key of a batch in value order."""
    keys, ids = keys_of(batch.column(VALUE)), batch.column(ROW_ID).to_numpy()
    nulls = keys.null_count
    if nulls:
        yield None, ids[:nulls]
    keys, ids = keys[nulls:], ids[nulls:]
    if not len(keys):
        return
    starts = np.concatenate([np.zeros(1, dtype=np.int64), changes(keys)])
    first = keys.take(pa.array(starts)).to_pylist()
    bounds = itertools.pairwise([*starts.tolist(), len(ids)])
    for key, (start, stop) in zip(first, bounds, strict=True):
        yield key, ids[start:stop]
