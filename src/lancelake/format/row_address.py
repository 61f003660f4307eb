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
    if fragments[0] == fragments[-1] and (fragments == fragments[0]).all():
        return {FragmentId(int(fragments[0])): roaring.of(offsets)}
    order = np.argsort(fragments, kind="stable")
    found, starts = np.unique(fragments[order], return_index=True)
    parts = np.split(offsets[order], starts[1:])
    return {FragmentId(i): roaring.of(p) for i, p in zip(found.tolist(), parts, strict=True)}


def ascending(rows: Mapping[FragmentId, BitMap] | Mapping[int, BitMap]) -> U64Array:
    """Return the addresses of offsets by fragment, in ascending order."""
    parts = [
        row_addresses(i, np.frombuffer(offsets.to_array(), dtype=np.uint32))
        for i, offsets in sorted(rows.items())
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
