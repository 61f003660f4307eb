"""Layout of legacy data files."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lancelake.data.column_reader import ByteSource
from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.fragment import DataFile
from lancelake.format.frozen import parse
from lancelake.format.ids import FieldId
from lancelake.format.schema import Schema, decode_schema
from lancelake.proto import file_pb2, table_pb2

T = TypeVar("T")
Int64s: TypeAlias = npt.NDArray[np.int64]

MAX_GAP_BYTES = 64 * 1024
WASTE_BYTES = 8 * 1024 * 1024
_MAX_POSITION = (1 << 63) - 1
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Spans:
    """Request for pieces of a file, joined."""

    starts: Int64s
    lengths: Int64s

    @staticmethod
    def one(start: int, length: int) -> Spans:
        """Request a single piece."""
        if start + length > _MAX_POSITION:
            msg = f"there are no {length} bytes at {start}"
            raise CorruptTableError(msg)
        return Spans(np.array([start], np.int64), np.array([length], np.int64))


# A coroutine that requests bytes, any number of times, and returns a T.
Decoding: TypeAlias = Generator[list[Spans], list[bytes], T]


def together(parts: Sequence[Decoding[T]]) -> Decoding[list[T]]:
    """Run several decoders together, so that they share reads."""
    results: dict[int, T] = {}
    waiting: dict[int, list[Spans]] = {}

    def advance(index: int, answers: list[bytes] | None) -> None:
        waiting.pop(index, None)
        try:
            waiting[index] = next(parts[index]) if answers is None else parts[index].send(answers)
        except StopIteration as end:
            results[index] = end.value

    for index in range(len(parts)):
        advance(index, None)
    while waiting:
        questions = dict(waiting)
        given = iter((yield [spans for asked in questions.values() for spans in asked]))
        for index, asked in questions.items():
            advance(index, [next(given) for _ in asked])
    return [results[index] for index in range(len(parts))]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Cached bytes of a file."""

    start: int
    data: bytes

    @property
    def stop(self) -> int:
        """Position after the last byte."""
        return self.start + len(self.data)


class LegacyReads:
    """A file read in few chunks, which are cached."""

    def __init__(self, source: ByteSource, *, size_bytes: int, known: Iterable[Chunk] = ()) -> None:
        """Read from `source`; `known` bytes are cached."""
        self._source = source
        self._size_bytes = size_bytes
        self._chunks = sorted(known, key=lambda chunk: chunk.start)

    def run(self, decoding: Decoding[T]) -> T:
        """Run a decoder and answer its requests."""
        try:
            asked = next(decoding)
            while True:
                asked = decoding.send(self._answer(asked))
        except StopIteration as end:
            result: T = end.value
            return result

    def _answer(self, asked: list[Spans]) -> list[bytes]:
        nothing = np.empty(0, np.int64)
        starts = np.concatenate([nothing, *(spans.starts for spans in asked)])
        stops = starts + np.concatenate([nothing, *(spans.lengths for spans in asked)])
        self._ensure_inside(starts, stops)
        missing = (self._places(starts, stops) == _NOWHERE) & (starts < stops)
        for start, stop in merged(starts[missing], stops[missing]):
            self._chunks.append(Chunk(start, self._source.read(start, stop - start)))
        self._chunks.sort(key=lambda chunk: chunk.start)
        pieces = self._pieces(starts, stops)
        return [b"".join(next(pieces) for _ in range(spans.starts.size)) for spans in asked]

    def _ensure_inside(self, starts: Int64s, stops: Int64s) -> None:
        outside = (starts < 0) | (stops < starts) | (stops > self._size_bytes)
        if outside.any():
            first = int(np.argmax(outside))
            msg = f"there are no bytes {starts[first]} to {stops[first]}"
            raise CorruptTableError(msg)

    def _places(self, starts: Int64s, stops: Int64s) -> npt.NDArray[np.intp]:
        """Return the index of a chunk with each piece."""
        if not self._chunks:
            return np.full(starts.size, _NOWHERE)
        firsts = np.array([chunk.start for chunk in self._chunks], np.int64)
        lasts = np.array([chunk.stop for chunk in self._chunks], np.int64)
        # Of the chunks that start early enough, the one that ends last.
        is_record = np.concatenate(([True], lasts[1:] > np.maximum.accumulate(lasts)[:-1]))
        furthest = np.maximum.accumulate(np.where(is_record, np.arange(lasts.size), 0))
        before = np.searchsorted(firsts, starts, side="right") - 1
        fragments = furthest[np.maximum(before, 0)]
        return np.where((before >= 0) & (lasts[fragments] >= stops), fragments, _NOWHERE)

    def _pieces(self, starts: Int64s, stops: Int64s) -> Generator[memoryview, None, None]:
        views = [memoryview(chunk.data) for chunk in self._chunks]
        firsts = [chunk.start for chunk in self._chunks]
        places = self._places(starts, stops).tolist()
        for place, start, stop in zip(places, starts.tolist(), stops.tolist(), strict=True):
            if start == stop:
                yield memoryview(b"")
            else:
                yield views[place][start - firsts[place] : stop - firsts[place]]


@contextmanager
def damage_in(source: ByteSource) -> Iterator[None]:
    """Add the file's name to errors about its bytes."""
    try:
        yield
    except CorruptTableError as error:
        msg = f"{source.name} is damaged: {error.problem}"
        raise CorruptTableError(msg, path=source.name) from error


def merged(
    starts: Int64s, stops: Int64s, *, waste_bytes: int = WASTE_BYTES
) -> list[tuple[int, int]]:
    """Merge pieces into reads while the gaps between them are small.

    All reads have at most twice the bytes of the pieces, plus `waste_bytes`.
    """
    if not starts.size:
        return []
    order = np.argsort(starts, kind="stable")
    starts, stops = starts[order], np.maximum.accumulate(stops[order])
    gaps = np.maximum(starts[1:] - stops[:-1], 0)
    wanted = int(stops[-1] - starts[0] - gaps.sum())
    smallest_first = np.argsort(gaps, kind="stable")
    affordable = np.cumsum(gaps[smallest_first]) <= wanted + waste_bytes
    bridged = np.zeros(gaps.size, np.bool_)
    bridged[smallest_first] = affordable & (gaps[smallest_first] <= MAX_GAP_BYTES)
    breaks = np.flatnonzero(~bridged)
    firsts = starts[np.concatenate(([0], breaks + 1))]
    lasts = stops[np.concatenate((breaks, [stops.size - 1]))]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


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
    tail = _tail(source, size_bytes)
    reads = LegacyReads(source, size_bytes=size_bytes, known=[tail])
    metadata = reads.run(_metadata(tail))
    row_offsets = _row_offsets(metadata)
    geometry = _Geometry.of(file, metadata.page_table_position, row_offsets.size - 1)
    pages = reads.run(_pages(geometry, tuple(wanted)))
    return Layout(row_offsets=row_offsets, pages=pages, size_bytes=size_bytes, tail=tail)


def load_schema(source: ByteSource) -> Schema:
    """Read the schema that a file has for its own columns."""
    size_bytes = source.size_bytes()
    tail = _tail(source, size_bytes)
    message = LegacyReads(source, size_bytes=size_bytes, known=[tail]).run(_manifest(tail))
    return decode_schema(message.fields, {})


def _tail(source: ByteSource, size_bytes: int) -> Chunk:
    start = max(0, size_bytes - TAIL_BYTES)
    return Chunk(start, source.read(start, size_bytes - start))


def _manifest(tail: Chunk) -> Generator[list[Spans], list[bytes], table_pb2.Manifest]:
    position = (yield from _metadata(tail)).manifest_position
    (head,) = yield [Spans.one(position, _LENGTH.size)]
    (length,) = _LENGTH.unpack(head)
    (body,) = yield [Spans.one(position + _LENGTH.size, length)]
    message = table_pb2.Manifest()
    parse(message, body, what="the schema of the file")
    return message


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
