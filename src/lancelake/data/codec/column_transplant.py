"""Transplants: copies of columns into a file that the codec reads correctly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lancelake.data.byte_source import ByteSource
from lancelake.data.codec.container import ENTRY, FOOTER, MAGIC, Container
from lancelake.errors import CorruptTableError
from lancelake.process import ContextThreadPool
from lancelake.proto import encodings20_pb2, encodings21_pb2, file2_pb2, file_pb2

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
    container: Container, plan: Transplant, target: Path, *, rows: range | None = None
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
    container: Container, plan: Transplant, rows: range, *, max_bytes: int
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
    container: Container, plan: Transplant, num_rows: int
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
    container: Container,
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
    parts.extend(ENTRY.pack(*extent) for extent in extents)
    buffers_start = end + ENTRY.size * len(extents)
    parts.append(ENTRY.pack(start, len(parts[0])))
    counts = (1, len(columns))
    parts.append(FOOTER.pack(columns_start, end, buffers_start, *counts, *version_numbers, MAGIC))
    return b"".join(parts)


def _copy(source: ByteSource, moves: Sequence[_Move], target: Path) -> None:
    def run(move: _Move) -> None:
        data = source.read(move.start, move.length)
        with target.open("r+b") as file:
            file.seek(move.target_start)
            file.write(data)

    chunks = [chunk for move in moves for chunk in _chunks(move)]
    with ContextThreadPool(max_workers=_PARALLEL_READS) as pool:
        for _ in pool.map(run, chunks):
            pass


def _chunks(move: _Move) -> Iterator[_Move]:
    for done in range(0, move.length, _CHUNK_BYTES):
        length = min(_CHUNK_BYTES, move.length - done)
        yield _Move(start=move.start + done, length=length, target_start=move.target_start + done)
