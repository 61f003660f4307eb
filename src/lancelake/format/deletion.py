"""Deletion files: the deleted rows of a fragment in two encodings."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format import roaring
from lancelake.format.arrow_message import first_batch_size
from lancelake.format.fragment import DeletionFileType
from lancelake.format.ids import MAX_ROWS

ARROW_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
BITMAP_THRESHOLD = 5000
_PADDING = 64
# Fewer rows fit into one block of a disk, whether they are compressed or not.
_FEW_ROWS = 1 << 10


def decode(data: bytes, encoding: DeletionFileType, *, rows: int | None = None) -> BitMap:
    """Decode the deleted row offsets of a fragment with this many rows, if known."""
    if encoding is DeletionFileType.BITMAP:
        rows_deleted = decode_bitmap(data, what="deletion file")
    else:
        rows_deleted = _decode_arrow(data, MAX_ROWS if rows is None else rows)
    if rows_deleted and rows is not None and rows_deleted.max() >= rows:
        raise _corrupt("deletion file", f"it names row {rows_deleted.max()} of {rows}")
    return rows_deleted


def encode(rows: BitMap, encoding: DeletionFileType) -> bytes:
    """Write the set of deleted row offsets."""
    if encoding is DeletionFileType.BITMAP:
        return bytes(rows.serialize())
    batch = pa.record_batch([pa.array(rows.to_array(), pa.uint32())], schema=ARROW_SCHEMA)
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if len(rows) > _FEW_ROWS else None)
    with pa.ipc.new_file(sink, ARROW_SCHEMA, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def choose_encoding(count: int, before: DeletionFileType | None) -> DeletionFileType:
    """Return the encoding of official writers: a bitmap for many rows, or after a bitmap."""
    if before is DeletionFileType.BITMAP:
        return DeletionFileType.BITMAP
    limit = BITMAP_THRESHOLD if before is None else BITMAP_THRESHOLD + 1
    return DeletionFileType.BITMAP if count >= limit else DeletionFileType.ARROW_ARRAY


def decode_bitmap(data: bytes, *, what: str) -> BitMap:
    """Decode a portable 32-bit Roaring bitmap; raise for damaged bytes."""
    try:
        roaring.ensure_well_formed(data)
        return BitMap.deserialize(data)
    except (ValueError, OverflowError, MemoryError) as error:
        raise _corrupt(what, str(error)) from error


def _decode_arrow(data: bytes, most_rows: int) -> BitMap:
    try:
        reader = pa.ipc.open_file(pa.BufferReader(data))
        if not reader.schema.equals(ARROW_SCHEMA, check_metadata=True):
            raise _corrupt("deletion file", f"its schema is {reader.schema}")
        if reader.num_record_batches != 1:
            raise _corrupt("deletion file", f"it has {reader.num_record_batches} batches")
        _ensure_bounded(data, most_rows)
        batch = reader.get_batch(0)
        batch.validate(full=True)
        if batch.column(0).null_count:
            raise _corrupt("deletion file", "it has nulls")
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, CorruptTableError):
            raise
        raise _corrupt("deletion file", str(error)) from error
    # Not through to_numpy(), which loads pandas where it is installed.
    column = batch.column(0)
    values = np.frombuffer(column.buffers()[1] or b"", dtype="<u4")
    return BitMap(values[column.offset : column.offset + len(column)])


def _ensure_bounded(data: bytes, most_rows: int) -> None:
    """Raise for a file that claims too many rows, before it is decompressed."""
    claimed, size = first_batch_size(data)
    if claimed > most_rows or size > _bytes_of(most_rows):
        raise _corrupt("deletion file", f"it claims {claimed} rows of {most_rows} in {size} bytes")


def _bytes_of(rows: int) -> int:
    """Size in bytes of row offsets and their validity, each padded."""
    return rows * 4 + rows // 8 + 2 * _PADDING


def _corrupt(what: str, detail: str) -> CorruptTableError:
    return CorruptTableError(f"{what} cannot be decoded: {detail}")
