"""Columns of a fragment's live rows, in their storage types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.format.schema import Schema
from lancelake.scan.live_rows import LiveRows
from lancelake.scan.plan import ScanTask
from lancelake.scan.row_width import row_bytes

_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 8 << 20


def live_batches(
    scan: ScanTask, schema: Schema, *, batch_bytes: int = _BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the fields of `schema` for the rows of a scan's fragment that are not deleted."""
    spec = scan.spec
    reader = FragmentReader(spec.files, spec.manifest_at, scan.fragment, schema)
    live = LiveRows(load_deletions(spec.files, scan.fragment))
    rows = batch_rows(scan, schema, batch_bytes)
    first = 0
    for batch in reader.batches(start=0, stop=reader.physical_rows, batch_rows=rows):
        mask = live.mask(first, first + batch.num_rows)
        first += batch.num_rows
        if mask is None:
            yield batch
        elif mask.any():
            yield batch.filter(pa.array(mask))


def batch_rows(
    scan: ScanTask, schema: Schema, limit_bytes: int = _BATCH_BYTES, *, most: int = _BATCH_ROWS
) -> int:
    """Return how many rows to read at once."""
    width = row_bytes(scan.fragment, scan.spec.widths, schema)
    return max(1, min(most, int(limit_bytes / width))) if width else most
