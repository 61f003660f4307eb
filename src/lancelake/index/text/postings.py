"""Posting lists: the documents of each term with its frequency and its positions there.

Documents are stored in blocks of 128 or 256. A block of 128 starts with the best score that one of
its documents gets. In one of 256, the frequencies have exceptions. In the last, shorter block of a
list, numbers are not packed.

The layout that is written stores the positions of each document on their own; the newer one stores
those of all documents of a block together.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.index.text import packing
from lancelake.index.text.packing import (
    BLOCK,
    WORD_BITS,
    Patches,
    ensure_sound,
    pack,
    packed_size,
    patch,
    put_rows,
    put_runs,
    rows_at,
    runs,
    unpack,
    widths,
)

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
I64 = npt.NDArray[np.int64]

FIXED_TAIL = "fixed32_v1"
VARINT_TAIL = "varint_delta_v1"
POSTING_TYPE = pa.list_(pa.large_binary())

_SCORE_BYTES = 4
_PATCHED_BLOCK = 256
_FIRST_BYTES = 4


@dataclass(frozen=True, slots=True)
class PostingLists:
    """The posting lists of consecutive terms: list i ends at `ends[i]`."""

    ends: I64
    documents: U32
    frequencies: U32

    @property
    def starts(self) -> I64:
        """Where each list starts."""
        return np.concatenate([np.zeros(1, np.int64), self.ends[:-1]])


def block_bounds(ends: I64, block: int = BLOCK) -> tuple[I64, I64, I64]:
    """Return where each block starts, how long it is, and how many blocks each list has."""
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    lengths = ends - starts
    counts = -(-lengths // block)
    numbers = runs(np.zeros(len(counts), np.int64), counts)
    begin = np.repeat(starts, counts) + numbers * block
    return begin, np.minimum(np.repeat(ends, counts) - begin, block), counts


def encode(lists: PostingLists, scores: F32) -> tuple[pa.Array, F32]:
    """Encode posting lists; return them with the best score of each block.

    `scores` are those of each document for its term.
    """
    begin, sizes, counts = block_bounds(lists.ends)
    best = np.maximum.reduceat(scores, begin) if len(begin) else np.zeros(0, np.float32)
    is_full = sizes == BLOCK
    rows = begin[is_full, None] + np.arange(BLOCK)
    documents, frequencies = lists.documents[rows], lists.frequencies[rows]
    deltas = np.diff(documents, axis=1, prepend=documents[:, :1])
    bits, frequency_bits = widths(deltas), widths(frequencies)
    lengths = _SCORE_BYTES + sizes * 8
    lengths[is_full] = (
        _SCORE_BYTES
        + _FIRST_BYTES
        + 2
        + packed_size(1) * (bits.astype(np.int64) + frequency_bits.astype(np.int64))
    )
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    buffer = np.empty(int(offsets[-1]), np.uint8)
    put_rows(buffer, offsets[:-1], best.astype("<f4").view(np.uint8).reshape(-1, _SCORE_BYTES))
    at = offsets[:-1][is_full] + _SCORE_BYTES
    firsts = np.ascontiguousarray(documents[:, 0]).astype("<u4").view(np.uint8)
    put_rows(buffer, at, firsts.reshape(-1, _FIRST_BYTES))
    at = _put_packed(buffer, at + _FIRST_BYTES, deltas, bits)
    _put_packed(buffer, at, frequencies, frequency_bits)
    _put_tails(buffer, offsets[:-1][~is_full] + _SCORE_BYTES, begin[~is_full], sizes, lists)
    blocks = pa.Array.from_buffers(
        pa.large_binary(), len(begin), [None, pa.py_buffer(offsets), pa.py_buffer(buffer)]
    )
    bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), blocks), best


def _put_packed(buffer: U8, at: I64, blocks: U32, bits: U8) -> I64:
    """Write blocks with their widths, and return the places after them."""
    put_rows(buffer, at, bits.reshape(-1, 1))
    for width in np.unique(bits).tolist():
        rows = np.flatnonzero(bits == width)
        put_rows(buffer, at[rows] + 1, pack(blocks[rows], width))
    return at + 1 + packed_size(1) * bits.astype(np.int64)


def _put_tails(buffer: U8, at: I64, begin: I64, sizes: I64, lists: PostingLists) -> None:
    tails = sizes[sizes < BLOCK]
    rows = runs(begin, tails)
    for values in (lists.documents, lists.frequencies):
        data = values[rows].astype("<u4").view(np.uint8)
        put_runs(buffer, at, tails * 4, data)
        at = at + tails * 4


def decode(
    blocks: pa.Array, lengths: I64, tail: str, what: str, block: int = BLOCK
) -> PostingLists:
    """Decode posting lists of known lengths, in blocks of `block` documents."""
    ends = np.cumsum(lengths)
    begin, sizes, counts = block_bounds(ends, block)
    buffer, offsets = _bytes_of(blocks)
    if len(offsets) - 1 != len(begin) or not np.array_equal(_list_sizes(blocks), counts):
        raise CorruptTableError(f"{what} has a number of blocks that does not match its length")
    total = int(ends[-1]) if len(ends) else 0
    documents, frequencies = np.empty(total, np.uint32), np.empty(total, np.uint32)
    is_full = sizes == block
    lists = PostingLists(ends, documents, frequencies)
    starts = offsets[:-1] + (0 if block == _PATCHED_BLOCK else _SCORE_BYTES)
    full = _Full(buffer, starts[is_full], offsets[1:][is_full], begin[is_full], block)
    _read_full(lists, full, what)
    rest = np.flatnonzero(~is_full)
    starts, stops = starts[rest], offsets[1:][rest]
    tails = _Tails(buffer, starts, stops, begin[rest], sizes[rest])
    if tail == FIXED_TAIL:
        _read_fixed(lists, tails, what)
    elif tail == VARINT_TAIL:
        _read_varints(lists, tails, what)
    else:
        raise CorruptTableError(f"{what} ends in unknown blocks {tail!r}")
    return lists


@dataclass(frozen=True, slots=True)
class _Full:
    """Packed blocks of posting lists: their bytes, and where their documents belong."""

    buffer: U8
    starts: I64
    stops: I64
    begin: I64
    size: int


def _read_full(lists: PostingLists, full: _Full, what: str) -> None:
    at = full.starts
    if not len(at):
        return
    ensure_sound(at + _FIRST_BYTES + 1 <= full.stops, what)
    firsts = rows_at(full.buffer, at, _FIRST_BYTES).view("<u4").reshape(-1)
    rows = full.begin[:, None] + np.arange(full.size)
    deltas, at = _unpack(full, at + _FIRST_BYTES, what, head=1)
    deltas[:, 0] += firsts
    lists.documents[rows] = np.cumsum(deltas, axis=1, dtype=np.uint32)
    if full.size != _PATCHED_BLOCK:
        lists.frequencies[rows], _ = _unpack(full, at, what, head=1)
        return
    frequencies, after = _unpack(full, at, what, head=2)
    bits, counts = full.buffer[at], full.buffer[at + 1]
    patch(frequencies, Patches(full.buffer, after, full.stops, bits, counts), what)
    lists.frequencies[rows] = frequencies


def _unpack(full: _Full, at: I64, what: str, *, head: int) -> tuple[U32, I64]:
    """Unpack numbers after a head, whose first byte is their width; return the places after."""
    ensure_sound(at + head <= full.stops, what)
    bits = full.buffer[at]
    after = at + head + packed_size(1, full.size) * bits.astype(np.int64)
    ensure_sound((after <= full.stops) & (bits <= WORD_BITS), what)
    values = np.empty((len(at), full.size), np.uint32)
    for width in np.unique(bits).tolist():
        rows = np.flatnonzero(bits == width)
        data = rows_at(full.buffer, at[rows] + head, packed_size(width, full.size))
        values[rows] = unpack(data, width, full.size)
    return values, after


@dataclass(frozen=True, slots=True)
class _Tails:
    """Last blocks of posting lists: their bytes, and where their documents belong."""

    buffer: U8
    starts: I64
    stops: I64
    begin: I64
    sizes: I64


def _read_fixed(lists: PostingLists, tails: _Tails, what: str) -> None:
    at, sizes = tails.starts, tails.sizes
    ensure_sound(tails.stops - at == sizes * 8, what)
    rows = runs(tails.begin, sizes)
    for values in (lists.documents, lists.frequencies):
        values[rows] = tails.buffer[runs(at, sizes * 4)].view("<u4")
        at = at + sizes * 4


def _read_varints(lists: PostingLists, tails: _Tails, what: str) -> None:
    sizes = tails.sizes
    if not len(sizes):
        return
    ensure_sound(tails.stops > tails.starts, what)
    data = tails.buffer[runs(tails.starts, tails.stops - tails.starts)]
    numbers = packing.decode(data, what)
    if len(numbers) != 2 * int(sizes.sum()):
        raise CorruptTableError(f"{what} has a damaged block")
    rows = runs(tails.begin, sizes)
    first = 2 * (np.cumsum(sizes) - sizes)
    deltas = numbers[runs(first, sizes)].astype(np.int64)
    sums = np.cumsum(deltas)
    starts = np.cumsum(sizes) - sizes
    before = sums[starts] - deltas[starts]
    lists.documents[rows] = (sums - np.repeat(before, sizes)).astype(np.uint32)
    lists.frequencies[rows] = numbers[runs(first + sizes, sizes)]


def _bytes_of(blocks: pa.ListArray) -> tuple[U8, I64]:
    """Return the bytes of all blocks, and where each starts."""
    values = blocks.flatten()
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data or b"", np.uint8), bounds


def _list_sizes(blocks: pa.ListArray) -> I64:
    return np.diff(np.asarray(blocks.offsets)).astype(np.int64)


POSITION_TYPE = pa.list_(pa.list_(pa.large_binary()))
# A document with few positions has their number, and the positions unpacked.
_PLAIN_VALUES = 2
_COUNT = struct.Struct("<I")
_BLOCK_HEAD = struct.Struct("<IB")


class SharedCodec(Enum):
    """Encoding of the positions of a block of documents."""

    PACKED = "packed_delta_v1"
    VARINT = "varint_doc_delta_v2"


def encode_positions(ends: I64, frequencies: U32, positions: U32) -> pa.Array:
    """Encode the positions of posting lists, in the order of their documents.

    Each document has the number of its positions and the positions, as two values.
    """
    counts = frequencies.astype(np.int64)
    if len(counts) and int(counts.max()) >= BLOCK:
        return _encode_long(ends, counts, positions)
    words = np.empty(len(counts) + len(positions), "<u4")
    starts = np.cumsum(counts) - counts + np.arange(len(counts))
    words[starts] = counts
    words[runs(starts + 1, counts)] = positions
    offsets = np.empty(2 * len(counts) + 1, np.int64)
    offsets[0:-1:2] = starts * 4
    offsets[1::2] = starts * 4 + 4
    offsets[-1] = len(words) * 4
    data = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(counts), [None, pa.py_buffer(offsets), pa.py_buffer(words)]
    )
    pairs = pa.array(np.arange(0, 2 * len(counts) + 1, 2, dtype=np.int32))
    bounds = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(bounds), pa.ListArray.from_arrays(pairs, data))


def _encode_long(ends: I64, counts: I64, positions: U32) -> pa.Array:
    """Encode positions of which some documents have at least a block."""
    stops = np.cumsum(counts)
    documents = [
        _encode_document(positions[stop - count : stop])
        for stop, count in zip(stops.tolist(), counts.tolist(), strict=True)
    ]
    starts = [0, *ends.tolist()[:-1]]
    lists = [documents[a:b] for a, b in zip(starts, ends.tolist(), strict=True)]
    return pa.array(lists, POSITION_TYPE)


def _encode_document(positions: U32) -> list[bytes]:
    parts = [_COUNT.pack(len(positions))]
    for start in range(0, len(positions), BLOCK):
        part = positions[start : start + BLOCK]
        if len(part) < BLOCK:
            parts.append(part.astype("<u4").tobytes())
            continue
        deltas = np.diff(part, prepend=part[:1]).reshape(1, -1)
        bits = int(widths(deltas)[0])
        parts.append(_BLOCK_HEAD.pack(int(part[0]), bits) + pack(deltas, bits).tobytes())
    return parts


def decode_positions(lists: pa.ListArray, frequencies: U32, what: str) -> U32:
    """Decode the positions of one posting list."""
    per_document = lists.flatten()
    values = per_document.flatten()
    counts = np.diff(np.asarray(per_document.offsets))
    if len(counts) != len(frequencies):
        raise CorruptTableError(f"{what} has positions of another number of documents")
    _, offset_buffer, data = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[
        values.offset : values.offset + len(values) + 1
    ]
    buffer = np.frombuffer(data or b"", np.uint8)
    if bool(np.all(counts == _PLAIN_VALUES)) and (
        not len(frequencies) or int(frequencies.max()) < BLOCK
    ):
        starts, stops = offsets[1:-1:2], offsets[2::2]
        if not np.array_equal(stops - starts, frequencies.astype(np.int64) * 4):
            raise CorruptTableError(f"{what} has damaged positions")
        return buffer[runs(starts, stops - starts)].view("<u4").astype(np.uint32)
    parts = [
        _decode_document(document, count, what)
        for document, count in zip(per_document.to_pylist(), frequencies.tolist(), strict=True)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint32)


def _decode_document(parts: list[bytes], count: int, what: str) -> U32:
    blocks: list[U32] = []
    left = count
    for part in parts[1:]:
        if left >= BLOCK:
            first, bits = _BLOCK_HEAD.unpack_from(part)
            data = np.frombuffer(part, np.uint8, offset=_BLOCK_HEAD.size)
            if len(data) != packed_size(bits):
                raise CorruptTableError(f"{what} has damaged positions")
            deltas = unpack(data.reshape(1, -1), bits)[0]
            blocks.append(np.cumsum(deltas, dtype=np.uint32) + np.uint32(first))
        else:
            blocks.append(np.frombuffer(part, "<u4").astype(np.uint32))
        left -= len(blocks[-1])
    if left:
        raise CorruptTableError(f"{what} has damaged positions")
    return np.concatenate(blocks)


def decode_shared(
    stream: bytes,
    block_offsets: I64,
    frequencies: U32,
    codec: SharedCodec,
    what: str,
    block: int = BLOCK,
) -> U32:
    """Decode the positions of one posting list whose blocks of documents share a stream."""
    data = np.frombuffer(stream, np.uint8)
    bounds = np.append(block_offsets, len(data))
    starts = np.arange(0, len(frequencies), block)
    if len(starts) != len(block_offsets) or bool(np.any(np.diff(bounds) < 0)):
        raise CorruptTableError(f"{what} has damaged positions")
    totals = np.add.reduceat(frequencies, starts) if len(starts) else frequencies
    deltas = [
        _stream(data[bounds[i] : bounds[i + 1]], int(total), codec, what)
        for i, total in enumerate(totals.tolist())
    ]
    flat = np.concatenate(deltas).astype(np.int64) if deltas else np.zeros(0, np.int64)
    if not len(flat):
        return flat.astype(np.uint32)
    sums = np.cumsum(flat)
    firsts = np.cumsum(frequencies.astype(np.int64)) - frequencies
    before = sums[firsts] - flat[firsts]
    positions_found: U32 = (sums - np.repeat(before, frequencies)).astype(np.uint32)
    return positions_found


def _stream(data: U8, count: int, codec: SharedCodec, what: str) -> U32:
    parts: list[U32] = []
    at = 0
    if codec is SharedCodec.PACKED:
        for _ in range(count // BLOCK):
            bits = int(data[at]) if at < len(data) else BLOCK
            stop = at + 1 + packed_size(bits)
            if stop > len(data):
                raise CorruptTableError(f"{what} has damaged positions")
            parts.append(unpack(data[at + 1 : stop].reshape(1, -1), bits)[0])
            at = stop
    parts.append(packing.decode(data[at:], what))
    whole = np.concatenate(parts)
    if len(whole) != count:
        raise CorruptTableError(f"{what} has damaged positions")
    return whole
