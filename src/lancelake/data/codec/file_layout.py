"""Layout of a Lance file: footer, columns, pages."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from struct import Struct, unpack_from
from typing import NamedTuple

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message

from lancelake.data.column_reader import ByteSource
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import FileVersion, version_from_numbers
from lancelake.format.schema import BLOB_KEY, EXTENSION_NAME, Field, decode_schema
from lancelake.proto import encodings21_pb2, file2_pb2, file_pb2

MAGIC = b"LANC"
FOOTER = Struct("<QQQIIHH4s")
"""Start of the column metadata, of the column table and of the buffer table; how many global
buffers and columns there are; major and minor version; the magic."""

ENTRY = Struct("<QQ")
"""Start and length, of one column's metadata or of one global buffer."""

TAIL_BYTES = 64 * 1024
"""Bytes that are read at once, from the end: all metadata of most files."""

_LIST_OF_STRUCTS = re.compile(r"fixed_size_list:struct:(\d{1,9})")
# Of alignment, between the schema and the end of a file.
_MOST_PADDING_BYTES = 1 << 20


# A tuple, because every open file has several.
class Extent(NamedTuple):
    """A range of bytes in a file."""

    start: int
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The tables at the end of a data file."""

    source: ByteSource
    size_bytes: int
    version_numbers: tuple[int, int]
    column_metadata: tuple[Extent, ...]
    global_buffers: tuple[Extent, ...]
    tail: bytes
    tail_start: int
    bounded_columns: frozenset[int] = frozenset()
    """Columns with pages whose rows have bounds that the codec relies on."""

    @property
    def version(self) -> FileVersion:
        """Version of the file."""
        return version_from_numbers(*self.version_numbers)

    @property
    def num_columns(self) -> int:
        """Number of columns of the file."""
        return len(self.column_metadata)

    def descriptor(self) -> file_pb2.FileDescriptor:
        """Load the schema and the number of rows."""
        message = file_pb2.FileDescriptor()
        _parse(self.source, message, self.descriptor_bytes())
        return message

    def descriptor_bytes(self) -> bytes:
        """Load the schema and the number of rows, encoded."""
        if not self.global_buffers:
            raise _corrupt(self.source, "no global buffer, thus no schema")
        return self.read(self.global_buffers[0])

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

    def checked(self) -> Container:
        """Find the bounded columns; raise CorruptTableError for those that would harm the codec.

        Buffers have to be in the file, names without zero bytes, and where every page is one of
        rows, their number has to be that of the file, or of the structs in lists of a fixed size.
        """
        descriptor = self.descriptor()
        num_rows = descriptor.length
        if any("\0" in f.name or "\0" in f.logical_type for f in descriptor.schema.fields):
            raise _corrupt(self.source, "the name of a column has a zero byte")
        counts_rows = self.version.leaves_only
        row_counts = {num_rows * each for each in _structs_per_row(descriptor)}
        # A file may have thousands of columns: the loops call as little as they can.
        tail, tail_start, end = self.tail, self.tail_start, self.size_bytes
        bounded = set()
        for index, (start, length) in enumerate(self.column_metadata):
            column = file2_pb2.ColumnMetadata()
            _parse(self.source, column, tail[start - tail_start : start - tail_start + length])
            extents = [(column.buffer_offsets, column.buffer_sizes)]
            rows = 0
            for page in column.pages:
                rows += page.length
                extents.append((page.buffer_offsets, page.buffer_sizes))
            for starts, sizes in extents:
                if len(starts) != len(sizes):
                    raise _corrupt(self.source, "a page has buffers without sizes")
                for first, size in zip(starts, sizes, strict=True):
                    if first + size > end:
                        raise _corrupt(self.source, "a page is outside of it")
            if counts_rows and rows not in row_counts:
                raise _corrupt(self.source, f"a column has {rows} rows instead of {num_rows}")
            pages = column.pages if counts_rows else ()
            bounded.update([index for page in pages if _is_bounded(self.source, page)])
        return replace(self, bounded_columns=frozenset(bounded))


def _is_bounded(source: ByteSource, page: file2_pb2.ColumnMetadata.Page) -> bool:
    bounds = row_bounds(page.encoding.direct.encoding)
    if isinstance(bounds, ChunkedValues):
        if bounds.num_items < page.length:
            raise _corrupt(source, "a page has fewer values than rows")
        return False
    return bounds is not None


def open_container(source: ByteSource) -> Container:
    """Read the footer of a file; raise CorruptTableError unless it is a complete data file."""
    size_bytes = source.size_bytes()
    if size_bytes < FOOTER.size:
        raise _corrupt(source, f"only {size_bytes} bytes")
    start = max(0, size_bytes - TAIL_BYTES)
    return container_of(source, source.read(start, size_bytes - start), size_bytes)


def container_of(source: ByteSource, tail: bytes, size_bytes: int) -> Container:
    """Decode the end of a file; raise CorruptTableError unless it is a complete data file.

    Every count and offset is checked against the size of the file, with the rules by which the
    codec reads them: it trusts them, and takes the memory that they claim.
    """
    if len(tail) < FOOTER.size:
        raise _corrupt(source, f"only {len(tail)} bytes")
    metadata, columns, buffers, num_buffers, num_columns, major, minor, magic = FOOTER.unpack(
        tail[-FOOTER.size :]
    )
    if magic != MAGIC:
        raise _corrupt(source, f"the last bytes are {magic!r}, not {MAGIC!r}")
    end = buffers + ENTRY.size * num_buffers
    is_ordered = metadata <= columns and columns + ENTRY.size * num_columns == buffers
    if not is_ordered or not 0 <= size_bytes - FOOTER.size - end <= _MOST_PADDING_BYTES:
        raise _corrupt(source, "its tables are not before its footer")
    tail = _from(source, columns, tail, size_bytes)
    begin = columns - size_bytes
    column_metadata = _extents(tail, begin, num_columns)
    _ensure_apart(source, column_metadata, range(metadata, columns))
    tail = _from(source, metadata, tail, size_bytes)
    container = Container(
        source=source,
        size_bytes=size_bytes,
        version_numbers=(major, minor),
        column_metadata=column_metadata,
        global_buffers=_extents(tail, buffers - size_bytes, num_buffers),
        tail=tail,
        tail_start=size_bytes - len(tail),
    )
    _ensure_schema_at_end(container, metadata)
    return container


def _from(source: ByteSource, start: int, tail: bytes, size_bytes: int) -> bytes:
    """Extend the end of a file so that it begins at `start` or before."""
    tail_start = size_bytes - len(tail)
    return tail if start >= tail_start else source.read(start, tail_start - start) + tail


def _extents(tail: bytes, begin: int, count: int) -> tuple[Extent, ...]:
    """Decode a table that begins that many bytes before the end of a file."""
    numbers = unpack_from(f"<{2 * count}Q", tail, len(tail) + begin)
    return tuple(map(Extent._make, zip(numbers[::2], numbers[1::2], strict=True)))


def _ensure_apart(source: ByteSource, columns: tuple[Extent, ...], metadata: range) -> None:
    """Raise unless the metadata of columns is in a range of the file and fills it."""
    lengths = 0
    for start, length in columns:
        if start < metadata.start or start + length > metadata.stop:
            raise _corrupt(source, "the metadata of a column is not where it has to be")
        lengths += length
    if not 0 <= len(metadata) - lengths <= _MOST_PADDING_BYTES:
        raise _corrupt(source, "the metadata of its columns does not fit its place")


def _ensure_schema_at_end(container: Container, metadata_start: int) -> None:
    """Raise for global buffers outside of a file, and for a schema that is not at its end.

    The codec reads everything from the schema on to open a file.
    """
    buffers = container.global_buffers
    if max(map(sum, buffers), default=0) > container.size_bytes:
        raise _corrupt(container.source, "a global buffer is outside of it")
    if not buffers:
        return
    schema = buffers[0]
    if sum(schema) > metadata_start:
        raise _corrupt(container.source, "its schema is not before its column metadata")
    total = sum(buffer.length for buffer in buffers if buffer.start >= schema.start)
    if metadata_start - schema.start > total + _MOST_PADDING_BYTES:
        raise _corrupt(container.source, "its schema is not at its end")


def _structs_per_row(descriptor: file_pb2.FileDescriptor) -> set[int]:
    """Return how many structs in nested lists of a fixed size a row can have: 1 without any."""
    counts = {-1: 1}
    for field in descriptor.schema.fields:
        size = _LIST_OF_STRUCTS.fullmatch(field.logical_type)
        own = 1 if size is None else int(size[1])
        counts[field.id] = counts.get(field.parent_id, 1) * own
    return set(counts.values())


def _parse(source: ByteSource, message: Message, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as cause:
        raise _corrupt(source, f"its {message.DESCRIPTOR.name} cannot be decoded") from cause


def _corrupt(source: ByteSource, reason: str) -> CorruptTableError:
    return CorruptTableError(
        f"{source.name} is not a whole Lance data file: {reason}", path=source.name, reason=reason
    )


_ARROW_JSON = b"arrow.json"
_LISTS = ("list", "large_list", "map")
_FIXED_SIZE_STRUCTS = "fixed_size_list:struct:"
_index_of = attrgetter("index")


class ColumnKind(Enum):
    """Content of a column."""

    VALUES = "values"
    """The values of a node without children."""

    PARENT = "parent"
    """Offsets of lists, or the length of structs; in 2.0 files only."""

    PACKED_STRUCT = "packed struct"
    """All fields of a struct, row by row."""

    EMPTY_STRUCT = "empty struct"
    """A struct without fields."""

    BLOB_V1 = "blob v1"
    """Positions and sizes of values that are stored elsewhere in the file."""

    BLOB_V2 = "blob v2"
    """Descriptors of values in this file, in files beside it or external."""

    JSON_TEXT = "json text"
    """JSON that pylance 4 stored as text, with the offsets of its Arrow type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalColumn:
    """A column of a data file, and its path of nodes in the file's schema."""

    index: int
    kind: ColumnKind
    nodes: tuple[Field, ...]
    top: int
    width: int = 1
    """Physical columns of the node: two where offsets and bytes of strings are separate."""

    @property
    def path(self) -> tuple[str, ...]:
        """Names from the root down, as in the file."""
        return tuple(node.name for node in self.nodes)

    @property
    def field(self) -> Field:
        """The node that owns the column."""
        return self.nodes[-1]

    @property
    def is_below_list(self) -> bool:
        """Whether a row may have several of these values."""
        return any(map(_is_list, self.nodes))

    @property
    def has_list_in_struct(self) -> bool:
        """Whether a list, at any depth, belongs to a struct."""
        lists = [depth for depth, node in enumerate(self.nodes) if _is_list(node)]
        above = self.nodes[: lists[-1]] if lists else ()
        return any(node.logical_type == "struct" for node in above)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """The columns of a data file, in the order of their indices."""

    version: FileVersion
    num_rows: int
    columns: tuple[PhysicalColumn, ...]
    is_plain: bool
    """Whether the codec reads any subset of these columns correctly."""

    has_gaps: bool = False
    """Whether column indices differ from those that the codec computes from the schema."""

    def find(self, index: int) -> PhysicalColumn | None:
        """Return the column with this index, if the file has it."""
        place = bisect_left(self.columns, index, key=_index_of) if self.has_gaps else index
        column = self.columns[place] if 0 <= place < len(self.columns) else None
        return column if column is not None and column.index == index else None

    @property
    def first_blob_v2(self) -> int | None:
        """Index of the first blob v2 column."""
        blobs = (c.index for c in self.columns if c.kind is ColumnKind.BLOB_V2)
        return next(blobs, None)


def decode(
    descriptor: file_pb2.FileDescriptor, version: FileVersion, *, num_columns: int | None = None
) -> FileLayout:
    """Number the columns; `num_columns`, if given, must be the result."""
    schema = decode_schema(_with_blob_members(descriptor.schema.fields), {})
    owners = (
        (top, nodes)
        for top, field in enumerate(schema.fields)
        for nodes in _owners((field,), version)
    )
    columns = tuple(
        PhysicalColumn(index=index, kind=kind_of(nodes[-1]), nodes=nodes, top=top)
        for index, (top, nodes) in enumerate(owners)
    )
    if num_columns is not None and num_columns != len(columns):
        raise CorruptTableError(
            f"A data file has {num_columns} columns, its schema {len(columns)}",
            expected=len(columns),
            found=num_columns,
        )
    return FileLayout(
        version=version,
        num_rows=descriptor.length,
        columns=columns,
        is_plain=_are_plain(columns),
    )


def _is_list(node: Field) -> bool:
    return node.logical_type.split(".")[0] in _LISTS


def kind_of(field: Field) -> ColumnKind:
    """Return the content of a node's column."""
    if field.logical_type == "struct":
        if BLOB_KEY in field.metadata:
            return ColumnKind.BLOB_V2
        if field.is_packed:
            return ColumnKind.PACKED_STRUCT
        return ColumnKind.PARENT if field.children else ColumnKind.EMPTY_STRUCT
    if field.is_blob_v1:
        return ColumnKind.BLOB_V1
    if field.is_json and field.metadata.get(EXTENSION_NAME) == _ARROW_JSON:
        return ColumnKind.JSON_TEXT
    return ColumnKind.PARENT if field.children else ColumnKind.VALUES


def is_fixed_size_structs(field: Field) -> bool:
    """Whether a node is a fixed-size list of structs."""
    return field.logical_type.startswith(_FIXED_SIZE_STRUCTS)


def _are_plain(columns: tuple[PhysicalColumn, ...]) -> bool:
    plain = (ColumnKind.VALUES, ColumnKind.PARENT, ColumnKind.PACKED_STRUCT)
    if any(column.kind not in plain for column in columns):
        return False
    nodes = {id(node): node for column in columns for node in column.nodes}.values()
    if any(not n.name or n.logical_type == "map" or is_fixed_size_structs(n) for n in nodes):
        return False
    return len({column.path for column in columns}) == len(columns)


def _owners(nodes: tuple[Field, ...], version: FileVersion) -> Iterator[tuple[Field, ...]]:
    """Yield the trail to each node that owns a column, parents first."""
    if kind_of(nodes[-1]) is not ColumnKind.PARENT:
        yield nodes
        return
    if not version.leaves_only:
        yield nodes
    for child in nodes[-1].children:
        yield from _owners((*nodes, child), version)


def _with_blob_members(fields: Iterable[file_pb2.Field]) -> Iterator[file_pb2.Field]:
    """Add the fields of blob descriptors, which have no ids, below their blob."""
    blob: file_pb2.Field | None = None
    for field in fields:
        if field.id >= 0:
            is_blob = field.logical_type == "struct" and BLOB_KEY in field.metadata
            blob = field if is_blob else None
            yield field
        elif blob is not None:
            member = file_pb2.Field()
            member.CopyFrom(field)
            member.parent_id = blob.id
            yield member
        else:
            yield field


_ITEMS = (encodings21_pb2.REPDEF_ALL_VALID_ITEM, encodings21_pb2.REPDEF_NULLABLE_ITEM)
_BYTE = 8
_WORD_BYTES = (0, 1, 2, 4)


class ZippedRows(NamedTuple):
    """Rows that lie one after the other; their offsets are in another buffer.

    A row has one item or, with lists, several: a word with the levels, and a value.
    """

    word_bytes: int
    bits_def: int
    has_lists: bool
    most_rep: int
    """Repetition level of the first item of a row."""
    most_visible: int
    """Highest definition level of an item with a value, in lists."""
    length_bytes: int
    """Bytes of the length before each value; 0 where all values have the same."""
    value_bytes: int
    """Bytes of each value where all have the same."""


class ChunkedValues(NamedTuple):
    """Values in chunks, without lists: the last chunk has what the others lack."""

    num_items: int


class ChunkedLists(NamedTuple):
    """Lists in chunks: words tell their sizes, and the numbers in another buffer their rows."""

    word_bytes: int
    numbers: int
    """Numbers of a chunk."""


def page_layout(page: file2_pb2.ColumnMetadata.Page) -> encodings21_pb2.PageLayout:
    """Decode the layout of a page."""
    return _decoded(page.encoding.direct.encoding)


def levels_above_lists(page: file2_pb2.ColumnMetadata.Page) -> tuple[bool, ...]:
    """Return whether each level outside of the innermost list is a struct with nulls.

    The codec decodes the levels of all pages of a batch as those of the first page: it fails,
    or returns wrong values, where these differ.
    """
    return _levels(page.encoding.direct.encoding)


@lru_cache(maxsize=4096)
def row_bounds(encoding: bytes) -> ZippedRows | ChunkedLists | ChunkedValues | None:
    """Return how a page tells where its rows are; None where the codec does not rely on it.

    An encoding that cannot be decoded is left to the codec, which reports it.
    """
    try:
        layout = _decoded(encoding)
    except CorruptTableError:
        return None
    if layout.HasField("blob_layout"):
        layout = layout.blob_layout.inner_layout
    chunks, zipped = layout.mini_block_layout, layout.full_zip_layout
    if chunks.repetition_index_depth:
        return ChunkedLists(4 if chunks.has_large_chunk else 2, chunks.repetition_index_depth + 1)
    if layout.HasField("mini_block_layout"):
        return ChunkedValues(chunks.num_items)
    if not zipped.bits_rep and not zipped.bits_per_offset:
        return None
    bits = zipped.bits_rep + zipped.bits_def
    nullable = encodings21_pb2.REPDEF_NULLABLE_ITEM
    return ZippedRows(
        word_bytes=next((n for n in _WORD_BYTES if bits <= n * _BYTE), bits),
        bits_def=zipped.bits_def,
        has_lists=zipped.bits_rep > 0,
        most_rep=sum(layer not in _ITEMS for layer in zipped.layers),
        most_visible=sum(layer == nullable for layer in zipped.layers),
        length_bytes=zipped.bits_per_offset // _BYTE,
        value_bytes=zipped.bits_per_value // _BYTE,
    )


@lru_cache(maxsize=4096)
def _levels(encoding: bytes) -> tuple[bool, ...]:
    layers = _layers(_decoded(encoding))
    lists = [depth for depth, layer in enumerate(layers) if layer not in _ITEMS]
    outside = layers[lists[0] + 1 :] if lists else []
    return tuple(layer == encodings21_pb2.REPDEF_NULLABLE_ITEM for layer in outside)


def _decoded(encoding: bytes) -> encodings21_pb2.PageLayout:
    layout = encodings21_pb2.PageLayout()
    envelope = any_pb2.Any()
    try:
        envelope.ParseFromString(encoding)
        envelope.Unpack(layout)
    except DecodeError as cause:
        raise CorruptTableError("The encoding of a page cannot be decoded") from cause
    return layout


def _layers(layout: encodings21_pb2.PageLayout) -> list[encodings21_pb2.RepDefLayer]:
    """Levels of a page, from the values outwards."""
    if layout.HasField("blob_layout"):
        return _layers(layout.blob_layout.inner_layout)
    parts = (layout.mini_block_layout, layout.constant_layout, layout.full_zip_layout)
    return [layer for part in parts for layer in part.layers]
