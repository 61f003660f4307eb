"""Columns that every table has beside its own: where a row lies, and when it was made."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn

FRAGMENT_ID = "_fragid"
SCANNED = tuple(c.value for c in MetaColumn if c is not MetaColumn.ROW_OFFSET)
"""Metadata columns that a scan returns by itself."""

_COMMENTS = {
    "_rowid": "identifies a row; stable across rewrites where the table has stable row ids",
    "_rowaddr": "fragment in the upper 32 bits, offset in the lower",
    FRAGMENT_ID: "fragment that holds the row",
    "_row_created_at_version": "version in which the row first appeared",
    "_row_last_updated_at_version": "version that last changed the row",
}
NAMES = tuple(_COMMENTS)


def fields() -> list[t.StructField]:
    """Return the metadata columns as Spark sees them."""
    return [t.StructField(name, t.LongType(), nullable=False) for name in NAMES]


def fragment_type(snapshot: Snapshot) -> Callable[[tuple[str, ...]], pa.DataType | None]:
    """Return a lookup of types that knows only the column with the fragment's id."""
    is_own = FRAGMENT_ID in snapshot.manifest.schema.names
    return lambda path: pa.int64() if path == (FRAGMENT_ID,) and not is_own else None


def comment(name: str) -> str:
    """Say what a metadata column holds."""
    return _COMMENTS[name]


def with_fragment_id(batch: pa.RecordBatch, wanted: pa.Schema, fragment_id: int) -> pa.RecordBatch:
    """Add the fragment's id when it is wanted and not a column of the table."""
    if FRAGMENT_ID not in wanted.names or FRAGMENT_ID in batch.schema.names:
        return batch
    ids = pa.repeat(pa.scalar(fragment_id, pa.int64()), batch.num_rows)
    if not batch.num_columns:
        return pa.RecordBatch.from_arrays([ids], names=[FRAGMENT_ID])
    return batch.append_column(FRAGMENT_ID, ids)
