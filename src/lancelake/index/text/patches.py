"""Exceptions of packed blocks: high bits of the few numbers that are too large for the others.

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
I64 = npt.NDArray[np.int64]

_MORE, _LOW, _LOW_BITS = 0x80, 0x7F, 7
_MOST_BYTES = 5
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
        _ensure(at[rows] < stops[rows], what)
        places = data[at[rows]]
        high, at[rows] = _varints(data, at[rows] + 1, stops[rows], what)
        shifts = patches.bits[rows].astype(np.uint64)
        _ensure(shifts < _WORD_BITS, what)
        _ensure(high < np.uint64(1) << (np.uint64(_WORD_BITS) - shifts), what)
        _ensure(places < values.shape[1], what)
        values[rows, places] |= (high << shifts).astype(np.uint32)
    _ensure(at == stops, what)


def _varints(data: U8, at: I64, stops: I64, what: str) -> tuple[npt.NDArray[np.uint64], I64]:
    """Return the number at each place, and the place after it."""
    found = np.zeros(len(at), np.uint64)
    at = at.copy()
    rows = np.arange(len(at))
    for step in range(_MOST_BYTES):
        _ensure(at[rows] < stops[rows], what)
        byte = data[at[rows]]
        found[rows] |= (byte & _LOW).astype(np.uint64) << np.uint64(_LOW_BITS * step)
        at[rows] += 1
        rows = rows[byte >= _MORE]
        if not len(rows):
            return found, at
    raise CorruptTableError(f"{what} has a damaged block")


def _ensure(is_right: npt.NDArray[np.bool_], what: str) -> None:
    if not bool(np.all(is_right)):
        raise CorruptTableError(f"{what} has a damaged block")
