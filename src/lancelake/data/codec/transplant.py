"""Columns copied from one Lance file to another without decoding."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate, count
from pathlib import Path

import numpy as np
import pyarrow as pa
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.data.arrays.batches import rebatched
from lancelake.data.codec import file_layout
from lancelake.data.codec.official import fresh_path
from lancelake.data.codec.readers import CodecReader, explained, open_copy
from lancelake.data.codec.stored_offsets import unchecked_pages
from lancelake.data.column_reader import ByteSource, FileShape, RowOffsets, shaped
from lancelake.errors import CorruptTableError
from lancelake.format.frozen import EMPTY_MAP, FrozenMap
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.format.schema import Field, Schema, encode_schema
from lancelake.proto import encodings20_pb2, encodings21_pb2, file2_pb2, file_pb2
from lancelake.threads import Pool

_ALIGNMENT = 64
_CHUNK_BYTES = 8 * 1024 * 1024
_MAX_GAP_BYTES = 4096
_PARALLEL_READS = 4

# An omitted page keeps its position in the column. Its buffers are placed after the end of any
# file, so that reading them fails.
_NOWHERE = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Graft:
    """A column to copy."""

    index: int

    pages_hold_rows: bool = True
    """Whether the length of a page is a number of rows, or a fixed multiple of it."""

    unwraps_blob: bool = False
    """Whether to expose positions and sizes instead of blob values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transplant:
    """Columns and their schema, which has exactly these columns in this order."""

    grafts: tuple[Graft, ...]
    schema: file_pb2.Schema


def transplant(
    container: file_layout.Container, plan: Transplant, target: Path, *, rows: range | None = None
) -> None:
    """Write a data file with some columns of another, under another schema.

    The file has as many rows as the source; if `rows` is given, only those may be read. Memory
    is bounded. After an error the file is unusable.
    """
    num_rows = container.descriptor().length
    placement = _Placement()
    columns = [_placed(container, graft, placement, num_rows, rows) for graft in plan.grafts]
    descriptor = file_pb2.FileDescriptor(schema=plan.schema, length=num_rows)
    with target.open("wb") as file:
        file.seek(placement.end)
        file.write(file_tail(placement.end, columns, descriptor, container.version_numbers))
    _copy(container.source, placement.moves, target)


def windows(
    container: file_layout.Container, plan: Transplant, rows: range, *, max_bytes: int
) -> Iterator[range]:
    """Split rows at page boundaries into parts of about `max_bytes`."""
    num_rows = container.descriptor().length
    pages = sorted(_sized_pages(container, plan, num_rows), key=lambda page: page[0].stop)
    start, size_bytes = rows.start, 0
    for span, page_bytes in pages:
        if not start < span.stop < rows.stop:
            continue
        size_bytes += page_bytes
        if size_bytes >= max_bytes:
            yield range(start, span.stop)
            start, size_bytes = span.stop, 0
    if start < rows.stop:
        yield range(start, rows.stop)


def _sized_pages(
    container: file_layout.Container, plan: Transplant, num_rows: int
) -> Iterator[tuple[range, int]]:
    for graft in plan.grafts:
        column = container.column(graft.index)
        spans = _page_rows(column, graft, num_rows)
        if spans is not None:
            sizes = (sum(page.buffer_sizes) for page in column.pages)
            yield from zip(spans, sizes, strict=True)


@dataclass(slots=True, kw_only=True)
class _Move:
    start: int
    length: int
    target_start: int


class _Placement:
    """Assigns a position in the target to every range of the source."""

    def __init__(self) -> None:
        self.moves: list[_Move] = []
        self.end = 0

    def place(self, start: int, length: int) -> int:
        """Return the new position of these bytes, with the same alignment."""
        last = self.moves[-1] if self.moves else None
        if last is not None and 0 <= start - last.start - last.length <= _MAX_GAP_BYTES:
            last.length = start + length - last.start
        else:
            last = _Move(start=start, length=length, target_start=self.end + start % _ALIGNMENT)
            self.moves.append(last)
        self.end = last.target_start + last.length
        self.end += -self.end % _ALIGNMENT
        return last.target_start + start - last.start


def _placed(
    container: file_layout.Container,
    graft: Graft,
    placement: _Placement,
    num_rows: int,
    rows: range | None,
) -> file2_pb2.ColumnMetadata:
    column = container.column(graft.index)
    if graft.unwraps_blob:
        _unwrap_blob(column)
    _place_encoding(column.encoding, placement)
    _place_buffers(column, placement)
    wanted = _wanted_pages(column, graft, num_rows, rows)
    for page, is_wanted in zip(column.pages, wanted, strict=True):
        _place_encoding(page.encoding, placement)
        if is_wanted:
            _place_buffers(page, placement)
        else:
            page.buffer_offsets[:] = [_NOWHERE] * len(page.buffer_offsets)
    return column


def _wanted_pages(
    column: file2_pb2.ColumnMetadata, graft: Graft, num_rows: int, rows: range | None
) -> list[bool]:
    spans = _page_rows(column, graft, num_rows)
    if rows is None or spans is None:
        return [True] * len(column.pages)
    return [span.start < rows.stop and span.stop > rows.start for span in spans]


def _page_rows(column: file2_pb2.ColumnMetadata, graft: Graft, num_rows: int) -> list[range] | None:
    """Return the rows of each page, or None where pages do not align with rows."""
    ends = list(accumulate(page.length for page in column.pages))
    items = ends[-1] if ends else 0
    if not graft.pages_hold_rows or not items or items % num_rows:
        return None
    items_per_row = items // num_rows
    starts = [0, *ends[:-1]]
    return [
        range(start // items_per_row, -(-end // items_per_row))
        for start, end in zip(starts, ends, strict=True)
    ]


def _place_buffers(
    holder: file2_pb2.ColumnMetadata | file2_pb2.ColumnMetadata.Page, placement: _Placement
) -> None:
    if len(holder.buffer_offsets) != len(holder.buffer_sizes):
        raise CorruptTableError("A column of a data file has buffers without sizes")
    extents = zip(holder.buffer_offsets, holder.buffer_sizes, strict=True)
    holder.buffer_offsets[:] = [placement.place(start, length) for start, length in extents]


def _place_encoding(encoding: file2_pb2.Encoding, placement: _Placement) -> None:
    if encoding.WhichOneof("location") == "indirect":
        place = encoding.indirect
        place.buffer_location = placement.place(place.buffer_location, place.buffer_length)


def _unwrap_blob(column: file2_pb2.ColumnMetadata) -> None:
    """Turn a blob column into a column of positions and sizes."""
    whole = encodings20_pb2.ColumnEncoding()
    envelope = _envelope(column.encoding)
    envelope.Unpack(whole)
    if whole.HasField("blob"):
        _rewrite(column.encoding, envelope, whole.blob.inner.SerializeToString())
        return
    for page in column.pages:
        layout = encodings21_pb2.PageLayout()
        envelope = _envelope(page.encoding)
        # A page of nulls only is not wrapped.
        if envelope.Unpack(layout) and layout.HasField("blob_layout"):
            inner = layout.blob_layout.inner_layout.SerializeToString()
            _rewrite(page.encoding, envelope, inner)


def _envelope(encoding: file2_pb2.Encoding) -> any_pb2.Any:
    envelope = any_pb2.Any()
    try:
        envelope.ParseFromString(encoding.direct.encoding)
    except DecodeError as cause:
        raise CorruptTableError("The encoding of a blob column cannot be decoded") from cause
    return envelope


def _rewrite(encoding: file2_pb2.Encoding, envelope: any_pb2.Any, value: bytes) -> None:
    envelope.value = value
    encoding.direct.encoding = envelope.SerializeToString()


def file_tail(
    start: int,
    columns: Sequence[file2_pb2.ColumnMetadata],
    descriptor: file_pb2.FileDescriptor,
    version_numbers: tuple[int, int],
) -> bytes:
    """Return the metadata and footer after the column buffers of a data file."""
    parts = [descriptor.SerializeToString()]
    columns_start = start + len(parts[0])
    extents: list[tuple[int, int]] = []
    end = columns_start
    for column in columns:
        data = column.SerializeToString()
        extents.append((end, len(data)))
        end += len(data)
        parts.append(data)
    parts.extend(file_layout.ENTRY.pack(*extent) for extent in extents)
    buffers_start = end + file_layout.ENTRY.size * len(extents)
    parts.append(file_layout.ENTRY.pack(start, len(parts[0])))
    counts = (1, len(columns))
    parts.append(
        file_layout.FOOTER.pack(
            columns_start, end, buffers_start, *counts, *version_numbers, file_layout.MAGIC
        )
    )
    return b"".join(parts)


def _copy(source: ByteSource, moves: Sequence[_Move], target: Path) -> None:
    def run(move: _Move) -> None:
        data = source.read(move.start, move.length)
        with target.open("r+b") as file:
            file.seek(move.target_start)
            file.write(data)

    chunks = [chunk for move in moves for chunk in _chunks(move)]
    with Pool(_PARALLEL_READS) as pool:
        for _ in pool.map(run, chunks):
            pass


def _chunks(move: _Move) -> Iterator[_Move]:
    for done in range(0, move.length, _CHUNK_BYTES):
        length = min(_CHUNK_BYTES, move.length - done)
        yield _Move(start=move.start + done, length=length, target_start=move.target_start + done)


_PACKED: FrozenMap[str, bytes] = FrozenMap({"lance-encoding:packed": b"true"})
_POSITION_AND_SIZE = tuple(
    Field(name=name, id=FieldId(0), logical_type="uint64") for name in ("position", "size")
)
_BINARIES = {"string": "binary", "large_string": "large_binary"}
_DICTIONARY = "dict"
_BYTES = (Field(name="item", id=FieldId(0), logical_type="uint8"),)


def plan_transplant(
    layout: file_layout.FileLayout,
    columns: Sequence[file_layout.PhysicalColumn],
    *,
    short_json: Collection[int] = (),
    raw_text: bool = False,
) -> Transplant:
    """Plan a file of these columns, with the same parents as in their own.

    Blobs become packed structs: v2 with the fields of its descriptor, v1 with position and
    size. The JSON columns with an index in `short_json` become strings, and strings with a
    column of their own for the bytes become lists of bytes. With `raw_text`, strings become
    binaries, which the codec reads without a check that they are UTF-8.
    """
    roots: dict[int, _Branch] = {}
    for column in columns:
        level = roots
        for node in column.nodes:
            level = level.setdefault(id(node), _Branch(node)).children
    own = {id(column.field): column for column in layout.columns}
    # In 2.0 files the parents have columns as well.
    grafts = tuple(
        graft
        for branch in roots.values()
        for node in branch.walk()
        if id(node) in own
        for graft in _grafts(own[id(node)], layout)
    )
    readable = {
        id(c.field): _readable(c, is_short_json=c.index in short_json) for c in layout.columns
    }
    if raw_text:
        readable = {node: without_text(field) for node, field in readable.items()}
    fields = [branch.as_field(readable) for branch in roots.values()]
    schema = Schema(fields=tuple(_numbered(fields, NO_PARENT, count())))
    return Transplant(grafts=grafts, schema=file_pb2.Schema(fields=encode_schema(schema)))


def without_text(field: Field) -> Field:
    """Return a field with binaries in place of strings, at any depth."""
    kind, _, rest = field.logical_type.partition(":")
    if kind == _DICTIONARY:
        words, _, indices = rest.partition(":")
        logical_type = f"{kind}:{_BINARIES.get(words, words)}:{indices}"
    else:
        logical_type = _BINARIES.get(field.logical_type, field.logical_type)
    children = tuple(without_text(child) for child in field.children)
    if logical_type == field.logical_type and children == field.children:
        return field
    return replace(field, logical_type=logical_type, children=children)


@dataclass(slots=True)
class _Branch:
    """A node of a file's schema with its needed children."""

    node: Field
    children: dict[int, _Branch] = field(default_factory=dict)

    def walk(self) -> Iterator[Field]:
        """Yield the nodes, parents first."""
        yield self.node
        for child in self.children.values():
            yield from child.walk()

    def as_field(self, readable: dict[int, Field]) -> Field:
        """Return the node of the transplanted file."""
        if not self.children:
            return readable[id(self.node)]
        return self.node.with_children(tuple(c.as_field(readable) for c in self.children.values()))


def _grafts(column: file_layout.PhysicalColumn, layout: file_layout.FileLayout) -> Iterator[Graft]:
    yield Graft(
        index=column.index,
        unwraps_blob=column.kind is file_layout.ColumnKind.BLOB_V1,
        # Pages of 2.0 files count the items of a list, not its rows.
        pages_hold_rows=layout.version.leaves_only or not column.is_below_list,
    )
    for index in range(column.index + 1, column.index + column.width):
        yield Graft(index=index, pages_hold_rows=False)


def _readable(column: file_layout.PhysicalColumn, *, is_short_json: bool) -> Field:
    """Return the node of a column with a type that the codec reads correctly."""
    if column.kind is file_layout.ColumnKind.BLOB_V2:
        return replace(column.field, metadata=_PACKED)
    if column.kind is file_layout.ColumnKind.BLOB_V1:
        struct = replace(column.field, logical_type="struct", metadata=_PACKED)
        return struct.with_children(_POSITION_AND_SIZE)
    if column.width > 1:
        is_large = column.field.logical_type.startswith("large_")
        lists = "large_list" if is_large else "list"
        return replace(column.field, logical_type=lists, metadata=EMPTY_MAP, children=_BYTES)
    if is_short_json:
        return replace(column.field, logical_type="string", metadata=EMPTY_MAP)
    return column.field


def _numbered(
    fields: Sequence[Field], parent_id: FieldId, numbers: Iterator[int]
) -> Iterator[Field]:
    """Assign ids in pre-order."""
    for node in fields:
        node_id = FieldId(next(numbers))
        children = tuple(_numbered(node.children, node_id, numbers))
        yield replace(node, id=node_id, parent_id=parent_id, children=children)


# Bytes of the original that are copied to local disk at a time.
_WINDOW_BYTES = 64 << 20
_READAHEAD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantedColumns:
    """Some columns of one file; windows of them are copied to local disk, read and removed."""

    schema: pa.Schema
    container: file_layout.Container
    plan: Transplant
    shapes: tuple[FileShape, ...]

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return int(self.container.descriptor().length)

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        return rebatched(self._windows(start, stop, batch_rows), batch_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        parts = [self._empty()]
        if len(offsets):
            span = range(int(offsets[0]), int(offsets[-1]) + 1)
            for window in windows(self.container, self.plan, span, max_bytes=_WINDOW_BYTES):
                low, high = np.searchsorted(offsets, [window.start, window.stop])
                if high > low:
                    parts.append(self._take_within(window, offsets[low:high]))
        return pa.concat_batches(parts)

    def _take_within(self, window: range, offsets: RowOffsets) -> pa.RecordBatch:
        with self._reader(window) as reader:
            rows = reader.take_rows(offsets.tolist(), readahead=_READAHEAD)
            return self._shaped(pa.concat_batches(list(rows)))

    def _windows(self, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        span = range(start, stop)
        for window in windows(self.container, self.plan, span, max_bytes=_WINDOW_BYTES):
            with self._reader(window) as reader:
                rows = reader.read_range(
                    window.start, len(window), batch_rows=batch_rows, readahead=_READAHEAD
                )
                for batch in rows:
                    yield self._shaped(batch)

    @contextmanager
    def _reader(self, rows: range) -> Iterator[CodecReader]:
        """Open a temporary transplant of these rows."""
        target = fresh_path()
        try:
            with explained(self.container.source.name):
                unchecked = unchecked_pages(
                    self.container, [graft.index for graft in self.plan.grafts]
                )
                if unchecked is not None:
                    unchecked.check(rows)
                transplant(self.container, self.plan, target, rows=rows)
                yield open_copy(target, self.container.source.name)
        finally:
            target.unlink(missing_ok=True)

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return shaped(batch, self.shapes, self.schema, self.container.source.name)

    def _empty(self) -> pa.RecordBatch:
        arrays = [pa.array([], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
