"""Sets of row addresses as official Lance serializes them: a bitmap of offsets per fragment."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from pyroaring import BitMap

from lancelake.errors import InvalidRequestError
from lancelake.format.ids import MAX_ROWS, FragmentId

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
