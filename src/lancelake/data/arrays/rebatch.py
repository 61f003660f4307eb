"""Splitting and joining of batches to a size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

# Minimum and maximum that is passed to the codec at once.
LEAST_BYTES = 1024 * 1024
PIECE_BYTES = 32 * 1024 * 1024


def rebatched(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `rows`, except for the last."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.num_rows
        if size < rows:
            continue
        whole = pa.concat_batches(held)
        start = 0
        while size - start >= rows:
            yield whole.slice(start, rows)
            start += rows
        held, size = [whole.slice(start)], size - start
    if size:
        yield pa.concat_batches(held)


def joined_up_to(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Join small batches into batches of limited size."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if held and size + batch.num_rows > rows:
            yield pa.concat_batches(held) if len(held) > 1 else held[0]
            held, size = [], 0
        held.append(batch)
        size += batch.num_rows
    if held:
        yield pa.concat_batches(held) if len(held) > 1 else held[0]


def gathered(
    batches: Iterable[pa.RecordBatch], least_bytes: int = LEAST_BYTES
) -> Iterator[pa.RecordBatch]:
    """Join batches smaller than this, because each batch has a fixed cost in the codec."""
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes >= least_bytes:
            yield pa.concat_batches(held) if len(held) > 1 else batch
            held, held_bytes = [], 0
    if held:
        yield pa.concat_batches(held)


def pieces(batch: pa.RecordBatch, limit_bytes: int = PIECE_BYTES) -> Iterator[pa.RecordBatch]:
    """Split a batch into parts of about this size."""
    size = batch.nbytes
    if size <= limit_bytes:
        yield batch
        return
    rows = max(1, batch.num_rows * limit_bytes // size)
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
