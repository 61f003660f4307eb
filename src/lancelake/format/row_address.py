"""Row addresses: 64-bit numbers with the fragment in the upper half, the offset in the lower."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.format import roaring
from lancelake.format.ids import FragmentId
from lancelake.format.rowids.segment import U64Array

OFFSET_BITS = 32
"""Bits of a row address for the row within its fragment."""

MAX_ROWS = 1 << OFFSET_BITS
"""Number of rows of the largest fragment."""

MAX_FRAGMENT_ID = (1 << 64 - OFFSET_BITS) - 1

# From so many addresses on, marking rows can be faster than sorting: if not too few are marked.
_MANY = 1 << 18
_MOST_SPARSE = 64

_SHIFT = np.uint64(OFFSET_BITS)
_OFFSET_MASK = np.uint64(MAX_ROWS - 1)


def split(address: int) -> tuple[int, int]:
    """Return the fragment and the offset of one address."""
    return divmod(address, MAX_ROWS)


def fragment_of(addresses: U64Array) -> U64Array:
    """Return the fragment of each address."""
    return addresses >> _SHIFT


def offset_of(addresses: U64Array) -> U64Array:
    """Return the offset of each address within its fragment."""
    return addresses & _OFFSET_MASK


def row_addresses(fragment_id: int, offsets: npt.NDArray[np.uint32] | U64Array) -> U64Array:
    """Return the address of each offset of a fragment."""
    return offsets + np.uint64(fragment_id << OFFSET_BITS)


def by_fragment(addresses: U64Array) -> dict[FragmentId, BitMap]:
    """Return the offsets of addresses, in any order and with repeats, by fragment."""
    if not len(addresses):
        return {}
    # A view as 32-bit halves splits the addresses without a copy.
    halves = np.ascontiguousarray(addresses, dtype="<u8").view("<u4")
    offsets, fragments = halves[::2], halves[1::2]
    if len(addresses) >= _MANY and int(fragments.max()) < _MANY:
        rows, ids = int(offsets.max()) + 1, np.flatnonzero(np.bincount(fragments))
        if rows * len(ids) <= _MOST_SPARSE * len(addresses):
            return _marked(offsets, fragments, ids, rows)
    # In order, bitmaps are made several times as fast.
    halves = np.sort(addresses).astype("<u8", copy=False).view("<u4")
    offsets, fragments = halves[::2], halves[1::2]
    if fragments[0] == fragments[-1]:
        return {FragmentId(int(fragments[0])): roaring.of(offsets)}
    starts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
    found = fragments[np.concatenate([[0], starts])]
    parts = np.split(offsets, starts)
    return {FragmentId(i): roaring.of(p) for i, p in zip(found.tolist(), parts, strict=True)}


def _marked(
    offsets: npt.NDArray[np.uint32],
    fragments: npt.NDArray[np.uint32],
    ids: npt.NDArray[np.int64],
    rows: int,
) -> dict[FragmentId, BitMap]:
    """Mark the rows of each fragment, which takes less time than sorting many addresses."""
    firsts = np.zeros(int(ids[-1]) + 1, dtype=np.int64)
    firsts[ids] = np.arange(len(ids)) * rows
    marks = np.zeros(rows * len(ids), dtype=np.bool_)
    marks[firsts[fragments] + offsets] = True
    parts = marks.reshape(len(ids), rows)
    return {FragmentId(i): roaring.of_mask(p) for i, p in zip(ids.tolist(), parts, strict=True)}


def ascending(rows: Mapping[FragmentId, BitMap] | Mapping[int, BitMap]) -> U64Array:
    """Return the addresses of offsets by fragment, in ascending order."""
    parts = [
        row_addresses(i, np.frombuffer(offsets.to_array(), dtype=np.uint32))
        for i, offsets in sorted(rows.items())
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
