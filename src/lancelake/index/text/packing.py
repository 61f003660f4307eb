"""Packed integers of posting lists.

The numbers of a block are dealt out to four lanes, or to eight. Each lane packs its 32 numbers,
lowest bits first, into 32-bit words, and the words of the lanes alternate.

Each exception is the place of a number in its block, as one byte, and a varint of what is added
above the packed bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.errors import CorruptTableError

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]

BLOCK = 128
"""Numbers of a block as it is written."""
_PER_LANE = 32
WORD_BITS = 32
"""The most bits of a number."""


def widths(blocks: U32) -> U8:
    """Return the number of bits that the largest number of each block needs."""
    most = np.bitwise_or.reduce(blocks, axis=1).astype(np.float64)
    # The exponent of a float with 53 bits of precision is exact for 32-bit numbers.
    bits: U8 = np.frexp(most)[1].astype(np.uint8)
    return bits


def packed_size(bits: int, block: int = BLOCK) -> int:
    """Return the bytes of a packed block of some numbers."""
    return block // _PER_LANE * 4 * bits


def pack(blocks: U32, bits: int) -> U8:
    """Pack blocks, one per row, with the same number of bits."""
    count, block = blocks.shape
    lanes = block // _PER_LANE
    values = blocks.reshape(count, _PER_LANE, lanes).astype(np.uint64)
    words = np.zeros((count, bits, lanes), np.uint64)
    for place in range(_PER_LANE if bits else 0):
        word, shift = divmod(place * bits, WORD_BITS)
        words[:, word] |= values[:, place] << np.uint64(shift)
        if shift + bits > WORD_BITS:
            words[:, word + 1] |= values[:, place] >> np.uint64(WORD_BITS - shift)
    # What a number has beyond its word is cut off here, and was added to the next one.
    return words.astype("<u4").reshape(count, bits * lanes).view(np.uint8)


def unpack(data: U8, bits: int, block: int = BLOCK) -> U32:
    """Unpack blocks of some numbers, one per row, with the same number of bits."""
    count, lanes = len(data), block // _PER_LANE
    if not bits:
        return np.zeros((count, block), np.uint32)
    words = np.ascontiguousarray(data).view("<u4").reshape(count, bits, lanes).astype(np.uint64)
    values = np.empty((count, _PER_LANE, lanes), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for place in range(_PER_LANE):
        word, shift = divmod(place * bits, WORD_BITS)
        part = words[:, word] >> np.uint64(shift)
        if shift + bits > WORD_BITS:
            part = part | (words[:, word + 1] << np.uint64(WORD_BITS - shift))
        values[:, place] = part & mask
    return values.reshape(count, block).astype(np.uint32)


_LOW = np.uint8(0x7F)
_MOST_BYTES = 5


def decode(data: U8, what: str) -> U32:
    """Decode all integers of a sequence of bytes."""
    if not len(data):
        return np.zeros(0, np.uint32)
    ends = np.flatnonzero(data <= _LOW)
    if not len(ends) or ends[-1] != len(data) - 1:
        raise CorruptTableError(f"{what} ends within a number")
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if int(lengths.max()) > _MOST_BYTES:
        raise CorruptTableError(f"{what} has a number of more than 32 bits")
    shifts = (np.arange(len(data)) - np.repeat(starts, lengths)) * 7
    parts = (data & _LOW).astype(np.uint64) << shifts.astype(np.uint64)
    return np.add.reduceat(parts, starts).astype(np.uint32)


I64 = npt.NDArray[np.int64]

_MORE, _PATCH_LOW, _LOW_BITS = 0x80, 0x7F, 7
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Patches:
    """Exceptions of blocks: their bytes, and by block the packed bits and the number of them."""

    data: U8
    starts: I64
    stops: I64
    bits: U8
    counts: U8


def patch(values: U32, patches: Patches, what: str) -> None:
    """Add exceptions to the numbers of blocks, one block per row."""
    data, stops, counts = patches.data, patches.stops, patches.counts
    at = patches.starts.copy()
    for number in range(int(counts.max()) if len(counts) else 0):
        rows = np.flatnonzero(counts > number)
        ensure_sound(at[rows] < stops[rows], what)
        places = data[at[rows]]
        high, at[rows] = _varints(data, at[rows] + 1, stops[rows], what)
        shifts = patches.bits[rows].astype(np.uint64)
        ensure_sound(shifts < _WORD_BITS, what)
        ensure_sound(high < np.uint64(1) << (np.uint64(_WORD_BITS) - shifts), what)
        ensure_sound(places < values.shape[1], what)
        values[rows, places] |= (high << shifts).astype(np.uint32)
    ensure_sound(at == stops, what)


def _varints(data: U8, at: I64, stops: I64, what: str) -> tuple[npt.NDArray[np.uint64], I64]:
    """Return the number at each place, and the place after it."""
    numbers = np.zeros(len(at), np.uint64)
    at = at.copy()
    rows = np.arange(len(at))
    for step in range(_MOST_BYTES):
        ensure_sound(at[rows] < stops[rows], what)
        byte = data[at[rows]]
        numbers[rows] |= (byte & _PATCH_LOW).astype(np.uint64) << np.uint64(_LOW_BITS * step)
        at[rows] += 1
        rows = rows[byte >= _MORE]
        if not len(rows):
            return numbers, at
    raise CorruptTableError(f"{what} has a damaged block")


def ensure_sound(is_right: npt.NDArray[np.bool_], what: str) -> None:
    """Raise for damage unless all of this is right."""
    if not bool(np.all(is_right)):
        raise CorruptTableError(f"{what} has a damaged block")


_AT_ONCE = 1 << 22


def put_rows(buffer: U8, places: I64, rows: U8) -> None:
    """Copy rows of equal length to places of a buffer."""
    count, width = rows.shape
    if not width:
        return
    step = max(1, _AT_ONCE // width)
    columns = np.arange(width)
    for start in range(0, count, step):
        part = slice(start, start + step)
        buffer[places[part, None] + columns] = rows[part]


def rows_at(buffer: U8, places: I64, width: int) -> U8:
    """Return rows of equal length at places of a buffer."""
    rows_found = np.empty((len(places), width), np.uint8)
    step = max(1, _AT_ONCE // max(1, width))
    columns = np.arange(width)
    for start in range(0, len(places), step):
        part = slice(start, start + step)
        rows_found[part] = buffer[places[part, None] + columns]
    return rows_found


def put_runs(buffer: U8, places: I64, lengths: I64, data: U8) -> None:
    """Copy adjacent runs of data to places of a buffer."""
    at = runs(places, lengths)
    for start in range(0, len(at), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        buffer[at[part]] = data[part]


def runs(starts: I64, lengths: I64) -> I64:
    """Return the numbers from each start on, as many as its length."""
    before = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    numbers: I64 = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return numbers
