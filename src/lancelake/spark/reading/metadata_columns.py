"""Metadata columns: row id, row address, fragment id and row versions."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import MetaColumn

FRAGMENT_ID = "_fragid"
SCANNED = tuple(c.value for c in MetaColumn if c is not MetaColumn.ROW_OFFSET)
"""Metadata columns that a scan itself returns."""

_COMMENTS = {
    "_rowid": "identifies a row; stable across rewrites if the table has stable row ids",
    "_rowaddr": "fragment id in the upper 32 bits, offset in the lower",
    FRAGMENT_ID: "fragment that contains the row",
    "_row_created_at_version": "version in which the row was created",
    "_row_last_updated_at_version": "version in which the row was last updated",
}
NAMES = tuple(_COMMENTS)


def fields() -> list[t.StructField]:
    """Return the metadata columns in Spark types."""
    return [t.StructField(name, t.LongType(), nullable=False) for name in NAMES]


def fragment_type(snapshot: Snapshot) -> Callable[[tuple[str, ...]], pa.DataType | None]:
    """Return a type lookup for only the fragment id column."""
    is_own = FRAGMENT_ID in snapshot.manifest.schema.names
    return lambda path: pa.int64() if path == (FRAGMENT_ID,) and not is_own else None


def comment(name: str) -> str:
    """Return the comment of a metadata column."""
    return _COMMENTS[name]


def with_fragment_id(batch: pa.RecordBatch, wanted: pa.Schema, fragment_id: int) -> pa.RecordBatch:
    """Add the fragment id if it is requested and not a column of the table."""
    if FRAGMENT_ID not in wanted.names or FRAGMENT_ID in batch.schema.names:
        return batch
    ids = pa.repeat(pa.scalar(fragment_id, pa.int64()), batch.num_rows)
    if not batch.num_columns:
        return pa.RecordBatch.from_arrays([ids], names=[FRAGMENT_ID])
    return batch.append_column(FRAGMENT_ID, ids)
