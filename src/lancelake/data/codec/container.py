"""Container of data files (2.0 and later): footer, column metadata and global buffers."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, unpack_from
from typing import NamedTuple

from google.protobuf.message import DecodeError, Message

from lancelake.data.byte_source import ByteSource
from lancelake.errors import CorruptTableError
from lancelake.format.file_version import FileVersion, from_numbers
from lancelake.proto import file2_pb2, file_pb2

MAGIC = b"LANC"
FOOTER = Struct("<QQQIIHH4s")
"""Start of the column metadata, of the column table and of the buffer table; how many global
buffers and columns there are; major and minor version; the magic."""

ENTRY = Struct("<QQ")
"""Start and length, of one column's metadata or of one global buffer."""

_TAIL_BYTES = 64 * 1024


# A tuple, because every open file has several.
class Extent(NamedTuple):
    """A range of bytes in a file."""

    start: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The tables at the end of a data file."""

    source: ByteSource
    version_numbers: tuple[int, int]
    column_metadata: tuple[Extent, ...]
    global_buffers: tuple[Extent, ...]
    tail: bytes
    tail_start: int

    @property
    def version(self) -> FileVersion:
        """Version of the file."""
        return from_numbers(*self.version_numbers)

    @property
    def num_columns(self) -> int:
        """Number of columns of the file."""
        return len(self.column_metadata)

    def descriptor(self) -> file_pb2.FileDescriptor:
        """Load the schema and the number of rows."""
        if not self.global_buffers:
            raise _corrupt(self.source, "no global buffer, thus no schema")
        message = file_pb2.FileDescriptor()
        _parse(self.source, message, self.read(self.global_buffers[0]))
        return message

    def column(self, index: int) -> file2_pb2.ColumnMetadata:
        """Load the description of one column."""
        message = file2_pb2.ColumnMetadata()
        _parse(self.source, message, self.read(self.column_metadata[index]))
        return message

    def read(self, extent: Extent) -> bytes:
        """Return bytes of the file; its last ones are cached."""
        begin = extent.start - self.tail_start
        if begin >= 0:
            return self.tail[begin : begin + extent.length]
        return self.source.read(extent.start, extent.length)


def open_container(source: ByteSource) -> Container:
    """Read the footer of a file; raise CorruptTableError unless it is a complete data file."""
    size_bytes = source.size_bytes()
    if size_bytes < FOOTER.size:
        raise _corrupt(source, f"only {size_bytes} bytes")
    tail_start = max(0, size_bytes - _TAIL_BYTES)
    tail = source.read(tail_start, size_bytes - tail_start)
    _, columns, buffers, num_buffers, num_columns, major, minor, magic = FOOTER.unpack(
        tail[-FOOTER.size :]
    )
    if magic != MAGIC:
        raise _corrupt(source, f"the last bytes are {magic!r}, not {MAGIC!r}")
    first = min(columns, buffers)
    if first + ENTRY.size * (num_buffers + num_columns) > size_bytes:
        raise _corrupt(source, "its tables are outside of it")
    if first < tail_start:
        tail = source.read(first, tail_start - first) + tail
        tail_start = first
    return Container(
        source=source,
        version_numbers=(major, minor),
        column_metadata=_extents(source, tail, columns - tail_start, num_columns, size_bytes),
        global_buffers=_extents(source, tail, buffers - tail_start, num_buffers, size_bytes),
        tail=tail,
        tail_start=tail_start,
    )


def _extents(
    source: ByteSource, tail: bytes, begin: int, count: int, size_bytes: int
) -> tuple[Extent, ...]:
    if begin + ENTRY.size * count > len(tail):
        raise _corrupt(source, "a table is cut off")
    numbers = unpack_from(f"<{2 * count}Q", tail, begin)
    extents = tuple(map(Extent._make, zip(numbers[::2], numbers[1::2], strict=True)))
    if max(map(sum, extents), default=0) > size_bytes:
        raise _corrupt(source, "a table points outside of it")
    return extents


def _parse(source: ByteSource, message: Message, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise _corrupt(source, f"its {message.DESCRIPTOR.name} cannot be decoded") from cause


def _corrupt(source: ByteSource, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{source.name} is not a whole Lance data file: {reason}", path=source.name, reason=reason
    )
