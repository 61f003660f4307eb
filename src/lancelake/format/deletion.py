"""Deletion files: the deleted rows of a fragment in two encodings."""

from __future__ import annotations

import io
import struct

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format.fragment import DeletionFileType
from lancelake.format.ids import MAX_ROWS
from lancelake.format.row_address import ensure_well_formed

_KIND, _HEADER, _BODY = 1, 2, 3
_ROWS, _BUFFERS, _COMPRESSION = 0, 2, 3
# Numbers of dictionary and record batches among the kinds of messages.
_BATCHES = (2, 3)
_CONTINUES = 0xFFFFFFFF
_RECORD_BATCHES = 3
_BLOCK = struct.Struct("<qi4xq")
_FILE_END = 10  # the length of the footer, and the magic bytes
_BUFFER = struct.Struct("<qq")
_LENGTH = struct.Struct("<q")


def first_batch_size(data: bytes) -> tuple[int, int]:
    """Return the row count of a file's first record batch, and its decompressed size in bytes.

    Raises ValueError for malformed bytes.
    """
    try:
        (length,) = struct.unpack_from("<i", data, len(data) - _FILE_END)
        footer = data[len(data) - _FILE_END - length :]
        blocks = _member(footer, _pointed(footer, 0), _RECORD_BATCHES)
        if blocks is None:
            return 0, 0
        start, meta_bytes, body_bytes = _BLOCK.unpack_from(footer, _pointed(footer, blocks) + 4)
        if min(start, meta_bytes, body_bytes) < 0:
            raise ValueError("a record batch outside of the file")
        # A continuation marker and the length precede the message.
        message = data[start + 8 : start + meta_bytes]
        body = data[start + meta_bytes : start + meta_bytes + body_bytes]
        return _batch_size(message, body)
    except (struct.error, IndexError) as error:
        raise ValueError("the file ends too early") from error


def stream_size(data: bytes) -> int:
    """Return the size in bytes of the decompressed record batches of a stream.

    Raises ValueError for malformed bytes.
    """
    size, position = 0, 0
    try:
        while position + 8 <= len(data):
            marker, length = struct.unpack_from("<Ii", data, position)
            # A stream ends with a message without length, or with its bytes.
            if marker != _CONTINUES or length <= 0:
                break
            start = position + 8
            message = data[start : start + length]
            body_at = _member(message, _pointed(message, 0), _BODY)
            body = 0 if body_at is None else int(_LENGTH.unpack_from(message, body_at)[0])
            if body < 0:
                raise ValueError("a message with a negative length")
            position = start + length + body
            if _is_batch(message):
                size += _batch_size(message, data[start + length : position])[1]
    except (struct.error, IndexError) as error:
        raise ValueError("the stream ends too early") from error
    return size


def _is_batch(message: bytes) -> bool:
    kind = _member(message, _pointed(message, 0), _KIND)
    return kind is not None and message[kind] in _BATCHES


def _batch_size(message: bytes, body: bytes) -> tuple[int, int]:
    batch = _member(message, _pointed(message, 0), _HEADER)
    if batch is None:
        return 0, 0
    header = _pointed(message, batch)
    rows = _member(message, header, _ROWS)
    is_compressed = _member(message, header, _COMPRESSION) is not None
    sizes = (
        _unpacked(body, offset, length) if is_compressed else length
        for offset, length in _buffers(message, header)
    )
    return (0 if rows is None else int(_LENGTH.unpack_from(message, rows)[0])), sum(sizes)


def _buffers(data: bytes, header: int) -> list[tuple[int, int]]:
    buffers = _member(data, header, _BUFFERS)
    if buffers is None:
        return []
    start = _pointed(data, buffers)
    (count,) = struct.unpack_from("<I", data, start)
    if count * _BUFFER.size > len(data):
        raise ValueError("a record batch with more buffers than bytes")
    return [_BUFFER.unpack_from(data, start + 4 + i * _BUFFER.size) for i in range(count)]


def _unpacked(body: bytes, offset: int, length: int) -> int:
    """Size of a compressed buffer, which begins with it; -1 means that it is not compressed."""
    if length < _LENGTH.size:
        return max(0, length)
    if offset < 0:
        raise ValueError("a buffer outside of its record batch")
    (size,) = _LENGTH.unpack_from(body, offset)
    return length if size < 0 else int(size)


def _pointed(data: bytes, position: int) -> int:
    (distance,) = struct.unpack_from("<I", data, position)
    return position + int(distance)


def _member(data: bytes, table: int, number: int) -> int | None:
    """Return the position of a member of a table; None when it is absent."""
    (back,) = struct.unpack_from("<i", data, table)
    vtable = table - back
    if vtable < 0:
        raise ValueError("a flatbuffer that points outside of itself")
    (size,) = struct.unpack_from("<H", data, vtable)
    slot = 4 + 2 * number
    if slot + 2 > size:
        return None
    (distance,) = struct.unpack_from("<H", data, vtable + slot)
    return table + int(distance) if distance else None


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
        ensure_well_formed(data)
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
