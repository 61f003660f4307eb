"""Layout of legacy data files: footer, metadata and page table."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from lancelake.data.byte_source import ByteSource
from lancelake.data.legacy.reads import Chunk, Int64s, LegacyReads, Spans
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.fragment import DataFile
from lancelake.format.ids import FieldId
from lancelake.format.unknown import parse
from lancelake.proto import file_pb2

TAIL_BYTES = 64 * 1024

_MAGIC = b"LANC"
_FOOTER = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_VERSIONS = ((0, 1), (0, 2))
_PAGE = np.dtype([("position", "<i8"), ("length", "<i8")])


@dataclass(frozen=True, slots=True, kw_only=True)
class PageColumn:
    """Pages of one field, one for each row group."""

    positions: Int64s
    lengths: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Row groups of a file, and the positions of some fields' pages."""

    row_offsets: Int64s
    pages: Mapping[FieldId, PageColumn]
    size_bytes: int
    tail: Chunk

    @property
    def num_rows(self) -> int:
        """Rows of the file."""
        return int(self.row_offsets[-1])

    @property
    def group_rows(self) -> Int64s:
        """Rows of each group."""
        return np.diff(self.row_offsets)


def load(source: ByteSource, file: DataFile, wanted: Iterable[FieldId]) -> Layout:
    """Read the footer of a file and the page positions of some fields."""
    # Manifests of legacy tables have wrong file sizes.
    size_bytes = source.size_bytes()
    start = max(0, size_bytes - TAIL_BYTES)
    tail = Chunk(start, source.read(start, size_bytes - start))
    reads = LegacyReads(source, size_bytes=size_bytes, known=[tail])
    metadata = reads.run(_metadata(tail))
    row_offsets = _row_offsets(metadata)
    geometry = _Geometry.of(file, metadata.page_table_position, row_offsets.size - 1)
    pages = reads.run(_pages(geometry, tuple(wanted)))
    return Layout(row_offsets=row_offsets, pages=pages, size_bytes=size_bytes, tail=tail)


def _metadata(tail: Chunk) -> Generator[list[Spans], list[bytes], file_pb2.Metadata]:
    if len(tail.data) < _FOOTER.size:
        msg = f"{len(tail.data)} bytes are too few for a footer"
        raise CorruptTableError(msg)
    footer_at = tail.stop - _FOOTER.size
    position, major, minor, magic = _FOOTER.unpack(tail.data[-_FOOTER.size :])
    if magic != _MAGIC or (major, minor) not in _VERSIONS:
        msg = f"its footer has {magic!r} {major}.{minor}, which is not a legacy file"
        raise CorruptTableError(msg)
    (head,) = yield [Spans.one(position, _LENGTH.size)]
    (length,) = _LENGTH.unpack(head)
    if position + _LENGTH.size + length > footer_at:
        msg = f"metadata of {length} bytes at {position} overlaps the footer"
        raise CorruptTableError(msg)
    (body,) = yield [Spans.one(position + _LENGTH.size, length)]
    message = file_pb2.Metadata()
    parse(message, body, what="metadata")
    return message


def _row_offsets(metadata: file_pb2.Metadata) -> Int64s:
    offsets = np.array(metadata.batch_offsets or [0], np.int64)
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        msg = "the offsets of its row groups do not ascend from 0"
        raise CorruptTableError(msg)
    return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Geometry:
    """The page table: one row per field id from the first, one page per group."""

    position: int
    groups: int
    first: FieldId
    fields: frozenset[FieldId]

    @staticmethod
    def of(file: DataFile, position: int, groups: int) -> _Geometry:
        if not file.fields or file.fields[0] < 0:
            msg = f"its first field is {file.fields[:1]}, from which pages cannot be counted"
            raise CorruptTableError(msg)
        fields = frozenset(f for f in file.fields if f >= file.fields[0])
        return _Geometry(position=position, groups=groups, first=file.fields[0], fields=fields)

    def row(self, field_id: FieldId) -> Spans:
        if field_id not in self.fields:
            msg = f"a data file does not have the requested field {field_id}"
            raise InvalidRequestError(msg, field_id=field_id)
        size = self.groups * _PAGE.itemsize
        return Spans.one(self.position + (field_id - self.first) * size, size)


def _pages(
    geometry: _Geometry, wanted: tuple[FieldId, ...]
) -> Generator[list[Spans], list[bytes], dict[FieldId, PageColumn]]:
    if not wanted:
        return {}
    rows = yield [geometry.row(field_id) for field_id in wanted]
    return {field_id: _page_column(row) for field_id, row in zip(wanted, rows, strict=True)}


def _page_column(row: bytes) -> PageColumn:
    table = np.frombuffer(row, _PAGE)
    return PageColumn(
        positions=table["position"].astype(np.int64), lengths=table["length"].astype(np.int64)
    )
