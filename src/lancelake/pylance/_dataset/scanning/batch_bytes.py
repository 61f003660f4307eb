"""Batches of a scan limited in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def in_bytes(rows: pa.RecordBatchReader, most: int) -> pa.RecordBatchReader:
    """Split batches that have more bytes; a row is never split."""
    return pa.RecordBatchReader.from_batches(rows.schema, _parts(rows, most))


def _parts(rows: pa.RecordBatchReader, most: int) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        pieces = -(-batch.nbytes // most) if batch.num_rows else 1
        step = max(1, batch.num_rows // pieces)
        for start in range(0, max(batch.num_rows, 1), step):
            yield batch.slice(start, step)
