"""Cutting and joining batches to a size."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def rebatched(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches of `rows` but for the last."""
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
