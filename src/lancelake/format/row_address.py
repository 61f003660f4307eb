"""Row addresses, and sets of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format import roaring
from lancelake.format.ids import MAX_ROWS, OFFSET_BITS, FragmentId
from lancelake.format.rowids import U64Array

# From so many addresses on, marking rows can be faster than sorting: if not too few are marked.
_MANY = 1 << 18
_MOST_SPARSE = 64
# From so many addresses on, sorting them by fragment first is faster.
_SOME = 1 << 12
_MOST_SHORT = (1 << 16) - 1

_SHIFT = np.uint64(OFFSET_BITS)
_OFFSET_MASK = np.uint64(MAX_ROWS - 1)


U32Array = npt.NDArray[np.uint32]


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
    if len(addresses) < _SOME or int(fragments.max()) > _MOST_SHORT:
        return _sorted_at_once(addresses)
    # Short numbers are sorted by radix, and the halves of addresses in half the time.
    order = np.argsort(fragments.astype(np.uint16), kind="stable")
    offsets, fragments = offsets[order], fragments[order]
    return _divided(offsets, fragments, np.sort)


def _sorted_at_once(addresses: U64Array) -> dict[FragmentId, BitMap]:
    halves = np.sort(addresses).astype("<u8", copy=False).view("<u4")
    return _divided(halves[::2], halves[1::2], lambda offsets: offsets)


def _divided(
    offsets: U32Array, fragments: U32Array, in_order: Callable[[U32Array], U32Array]
) -> dict[FragmentId, BitMap]:
    """Return the offsets of each fragment; in order, bitmaps are made several times as fast."""
    if fragments[0] == fragments[-1]:
        return {FragmentId(int(fragments[0])): roaring.of(in_order(offsets))}
    starts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
    numbers = fragments[np.concatenate([[0], starts])].tolist()
    parts = np.split(offsets, starts)
    return {FragmentId(i): roaring.of(in_order(p)) for i, p in zip(numbers, parts, strict=True)}


def _marked(
    offsets: U32Array,
    fragments: U32Array,
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


_WORD = struct.Struct("<I")


def encode(parts: Mapping[FragmentId, BitMap]) -> bytes:
    """Write the offsets of each fragment; fragments without rows are omitted."""
    entries = [(i, bytes(part.serialize())) for i, part in sorted(parts.items()) if part]
    body = b"".join(_WORD.pack(i) + _WORD.pack(len(data)) + data for i, data in entries)
    return _WORD.pack(len(entries)) + body


def decode(data: bytes) -> dict[FragmentId, BitMap]:
    """Decode the offsets of each fragment; an entry of length 0 stands for all rows."""
    parts: dict[FragmentId, BitMap] = {}
    try:
        (count,) = _WORD.unpack_from(data)
        at = _WORD.size
        for _ in range(count):
            (fragment,) = _WORD.unpack_from(data, at)
            (length,) = _WORD.unpack_from(data, at + _WORD.size)
            start = at + 2 * _WORD.size
            at = start + length
            if at > len(data):
                raise ValueError("it ends early")
            whole = BitMap(range(MAX_ROWS)) if not length else BitMap.deserialize(data[start:at])
            parts[FragmentId(fragment)] = whole
    except (struct.error, ValueError, OverflowError, TypeError) as error:
        problem = f"Invalid row address mask: {error}"
        raise InvalidRequestError(problem, action="Use serialize_row_addrs.") from error
    return parts
