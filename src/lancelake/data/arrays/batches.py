"""Batches: joined, split, compared, read ahead."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.threads import Ahead

# Minimum and maximum that is passed to the codec at once.
LEAST_BYTES = 1024 * 1024
PIECE_BYTES = 32 * 1024 * 1024


def rebatched(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `rows`, except for the last."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        if size < rows:
            continue
        whole = pa.concat_batches(waiting)
        start = 0
        while size - start >= rows:
            yield whole.slice(start, rows)
            start += rows
        waiting, size = [whole.slice(start)], size - start
    if size:
        yield pa.concat_batches(waiting)


def joined_up_to(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Join small batches into batches of limited size."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if waiting and size + batch.num_rows > rows:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]
            waiting, size = [], 0
        waiting.append(batch)
        size += batch.num_rows
    if waiting:
        yield pa.concat_batches(waiting) if len(waiting) > 1 else waiting[0]


def gathered(
    batches: Iterable[pa.RecordBatch], least_bytes: int = LEAST_BYTES
) -> Iterator[pa.RecordBatch]:
    """Join batches smaller than this, because each batch has a fixed cost in the codec."""
    waiting: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        waiting.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= least_bytes:
            yield pa.concat_batches(waiting) if len(waiting) > 1 else batch
            waiting, held_bytes = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def pieces(batch: pa.RecordBatch, limit_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of about this size."""
    size = batch.nbytes
    if size <= limit_bytes:
        yield batch
        return
    rows = max(1, batch.num_rows * limit_bytes // size)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


Mask = npt.NDArray[np.bool_]


def differing(one: pa.Array, other: pa.Array) -> Mask:
    """Return true for the rows whose values are not the same."""
    if isinstance(one, pa.ExtensionArray):
        return differing(one.storage, other.storage)
    if pa.types.is_dictionary(one.type):
        return differing(one.dictionary_decode(), other.dictionary_decode())
    if pa.types.is_null(one.type):
        return np.zeros(len(one), dtype=np.bool_)
    valid, other_valid = (_valid(array) for array in (one, other))
    differs: Mask = (valid != other_valid) | (valid & other_valid & _values(one, other))
    return differs


def _values(one: pa.Array, other: pa.Array) -> Mask:
    """Compare values; the result is undefined where one is null."""
    dtype = one.type
    if pa.types.is_struct(dtype):
        differs = np.zeros(len(one), dtype=np.bool_)
        for i in range(dtype.num_fields):
            differs |= differing(pc.struct_field(one, i), pc.struct_field(other, i))
        return differs
    if pa.types.is_fixed_size_list(dtype):
        return _fixed_lists(one, other)
    if pa.types.is_nested(dtype):
        return _lists(one, other)
    if pa.types.is_floating(dtype):
        return _floats(one, other)
    return _mask(pc.fill_null(pc.not_equal(one, other), False))


def _floats(one: pa.Array, other: pa.Array) -> Mask:
    a, b = (array.to_numpy(zero_copy_only=False) for array in (one, other))
    differs: Mask = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return differs


def _fixed_lists(one: pa.Array, other: pa.Array) -> Mask:
    size = one.type.list_size
    a, b = (array.values.slice(array.offset * size, len(array) * size) for array in (one, other))
    differs: Mask = np.logical_or.reduce(differing(a, b).reshape(len(one), size), axis=1)
    return differs


def _lists(one: pa.Array, other: pa.Array) -> Mask:
    """Compare lists of the same length item by item."""
    lengths, other_lengths = (_lengths(array) for array in (one, other))
    differs: Mask = np.not_equal(lengths, other_lengths)
    rows = np.flatnonzero(~differs & (lengths > 0))
    if not len(rows):
        return differs
    indices = pa.array(rows)
    a, b = (_items(array.take(indices)) for array in (one, other))
    starts = np.concatenate(([0], np.cumsum(lengths[rows])[:-1]))
    differs[rows] = np.logical_or.reduceat(differing(a, b), starts)
    return differs


def _items(array: pa.Array) -> pa.Array:
    if pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        fields = [array.type.key_field, array.type.item_field]
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
        return entries.slice(first, last - first)
    return array.flatten()


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    # Values below a null list are ignored.
    return np.where(_valid(array), np.diff(offsets), 0)


def _valid(array: pa.Array) -> Mask:
    return _mask(array.is_valid())


def _mask(array: pa.Array) -> Mask:
    mask: Mask = array.to_numpy(zero_copy_only=False)
    return mask


def search_sorted(
    ordered: pa.Array, values: pa.Array, *, side: Literal["left", "right"]
) -> pa.Array:
    """Return where each value would be inserted into ascending values; null for a null.

    That is before values equal to it on the left side, and behind them on the right.
    """
    if hasattr(pc, "search_sorted"):  # since pyarrow 26
        return pc.search_sorted(ordered, values, side=side)
    # The sort is stable: of equal values, those that come first stay first.
    parts = [values, ordered] if side == "left" else [ordered, values]
    order = pc.sort_indices(pa.concat_arrays(parts)).to_numpy()
    start = 0 if side == "left" else len(ordered)
    is_value = (order >= start) & (order < start + len(values))
    places = np.zeros(len(values), dtype=np.uint64)
    places[order[is_value] - start] = np.cumsum(~is_value)[is_value]
    return pa.array(places, mask=values.is_null().to_numpy(zero_copy_only=False))


_HELD = 2
# Starting a thread takes longer than reading them.
_FEW_ROWS = 1 << 10

Item = TypeVar("Item")


def read_ahead(
    items: Iterator[Item], *, held: int = _HELD, rows: int | None = None
) -> Generator[Item, None, None]:
    """Yield the same items; prefetch up to `held` of them, unless they are only a few rows.

    Closing the generator stops the prefetch.
    """
    if rows is not None and rows <= _FEW_ROWS:
        yield from items
        return
    ahead = Ahead(lambda: items, held=held)
    try:
        yield from ahead
    finally:
        ahead.stop()
        ahead.wait()
