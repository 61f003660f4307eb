"""Posting lists: the documents of each term with its frequency there, in blocks of 128 or 256.

A block of 128 starts with the best score that one of its documents gets. In one of 256, the
frequencies have exceptions. In the last, shorter block of a list, numbers are not packed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.index.text import varints
from lancelake.index.text.bit_packing import BLOCK, WORD_BITS, pack, packed_size, unpack, widths
from lancelake.index.text.patches import Patches, patch
from lancelake.index.text.segments_of_bytes import put_rows, put_runs, rows_at, runs

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
        chosen = np.flatnonzero(bits == width)
        put_rows(buffer, at[chosen] + 1, pack(blocks[chosen], width))
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
    found = PostingLists(ends, documents, frequencies)
    starts = offsets[:-1] + (0 if block == _PATCHED_BLOCK else _SCORE_BYTES)
    full = _Full(buffer, starts[is_full], offsets[1:][is_full], begin[is_full], block)
    _read_full(found, full, what)
    rest = np.flatnonzero(~is_full)
    starts, stops = starts[rest], offsets[1:][rest]
    tails = _Tails(buffer, starts, stops, begin[rest], sizes[rest])
    if tail == FIXED_TAIL:
        _read_fixed(found, tails, what)
    elif tail == VARINT_TAIL:
        _read_varints(found, tails, what)
    else:
        raise CorruptTableError(f"{what} ends in unknown blocks {tail!r}")
    return found


@dataclass(frozen=True, slots=True)
class _Full:
    """Packed blocks of posting lists: their bytes, and where their documents belong."""

    buffer: U8
    starts: I64
    stops: I64
    begin: I64
    size: int


def _read_full(found: PostingLists, full: _Full, what: str) -> None:
    at = full.starts
    if not len(at):
        return
    _ensure(at + _FIRST_BYTES + 1 <= full.stops, what)
    firsts = rows_at(full.buffer, at, _FIRST_BYTES).view("<u4").reshape(-1)
    rows = full.begin[:, None] + np.arange(full.size)
    deltas, at = _unpacked(full, at + _FIRST_BYTES, what, head=1)
    deltas[:, 0] += firsts
    found.documents[rows] = np.cumsum(deltas, axis=1, dtype=np.uint32)
    if full.size != _PATCHED_BLOCK:
        found.frequencies[rows], _ = _unpacked(full, at, what, head=1)
        return
    frequencies, after = _unpacked(full, at, what, head=2)
    bits, counts = full.buffer[at], full.buffer[at + 1]
    patch(frequencies, Patches(full.buffer, after, full.stops, bits, counts), what)
    found.frequencies[rows] = frequencies


def _unpacked(full: _Full, at: I64, what: str, *, head: int) -> tuple[U32, I64]:
    """Unpack numbers after a head, whose first byte is their width; return the places after."""
    _ensure(at + head <= full.stops, what)
    bits = full.buffer[at]
    after = at + head + packed_size(1, full.size) * bits.astype(np.int64)
    _ensure((after <= full.stops) & (bits <= WORD_BITS), what)
    values = np.empty((len(at), full.size), np.uint32)
    for width in np.unique(bits).tolist():
        chosen = np.flatnonzero(bits == width)
        data = rows_at(full.buffer, at[chosen] + head, packed_size(width, full.size))
        values[chosen] = unpack(data, width, full.size)
    return values, after


@dataclass(frozen=True, slots=True)
class _Tails:
    """Last blocks of posting lists: their bytes, and where their documents belong."""

    buffer: U8
    starts: I64
    stops: I64
    begin: I64
    sizes: I64


def _read_fixed(found: PostingLists, tails: _Tails, what: str) -> None:
    at, sizes = tails.starts, tails.sizes
    _ensure(tails.stops - at == sizes * 8, what)
    rows = runs(tails.begin, sizes)
    for values in (found.documents, found.frequencies):
        values[rows] = tails.buffer[runs(at, sizes * 4)].view("<u4")
        at = at + sizes * 4


def _read_varints(found: PostingLists, tails: _Tails, what: str) -> None:
    sizes = tails.sizes
    if not len(sizes):
        return
    _ensure(tails.stops > tails.starts, what)
    data = tails.buffer[runs(tails.starts, tails.stops - tails.starts)]
    numbers = varints.decode(data, what)
    if len(numbers) != 2 * int(sizes.sum()):
        raise CorruptTableError(f"{what} has a damaged block")
    rows = runs(tails.begin, sizes)
    first = 2 * (np.cumsum(sizes) - sizes)
    deltas = numbers[runs(first, sizes)].astype(np.int64)
    sums = np.cumsum(deltas)
    starts = np.cumsum(sizes) - sizes
    before = sums[starts] - deltas[starts]
    found.documents[rows] = (sums - np.repeat(before, sizes)).astype(np.uint32)
    found.frequencies[rows] = numbers[runs(first + sizes, sizes)]


def _bytes_of(blocks: pa.ListArray) -> tuple[U8, I64]:
    """Return the bytes of all blocks, and where each starts."""
    values = blocks.flatten()
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return np.frombuffer(data or b"", np.uint8), bounds


def _list_sizes(blocks: pa.ListArray) -> I64:
    return np.diff(np.asarray(blocks.offsets)).astype(np.int64)


def _ensure(is_right: npt.NDArray[np.bool_], what: str) -> None:
    if not bool(np.all(is_right)):
        raise CorruptTableError(f"{what} has a damaged block")
