"""Sets of 64-bit numbers as Roaring treemaps: a count, then a bitmap of low words per high word."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format import roaring

_COUNT = struct.Struct("<Q")
_HIGH = struct.Struct("<I")


def encode(parts: Mapping[int, BitMap]) -> bytes:
    """Write the low words of each high word; empty bitmaps are omitted."""
    present = sorted((high, part) for high, part in parts.items() if part)
    entries = [_HIGH.pack(high) + bytes(part.serialize()) for high, part in present]
    return _COUNT.pack(len(entries)) + b"".join(entries)


def decode(data: bytes, *, what: str) -> dict[int, BitMap]:
    """Decode the low words of each high word; raise for damaged bytes."""
    view = memoryview(data)
    parts: dict[int, BitMap] = {}
    try:
        (count,) = _COUNT.unpack_from(view)
        at = _COUNT.size
        for _ in range(count):
            (high,) = _HIGH.unpack_from(view, at)
            start = at + _HIGH.size
            at = roaring.end_of(view, start)
            parts[high] = BitMap.deserialize(bytes(view[start:at]))
    except (struct.error, ValueError, OverflowError, MemoryError) as error:
        raise CorruptTableError(f"{what} cannot be decoded: {error}") from error
    if at != len(view) or len(parts) != count:
        raise CorruptTableError(f"{what} cannot be decoded: {len(view) - at} bytes too many")
    return parts
