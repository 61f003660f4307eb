"""Updated row offsets: a field of Update that newer releases write."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lancelake.errors import CorruptTableError
from lancelake.format.frozen import parse
from lancelake.format.ids import FragmentId

_OFFSET_BITMAPS = 10
_VARINT = 0
_LENGTH_DELIMITED = 2
_SEVEN_BITS = 0x7F
_WHAT = "updated offsets of an update"


def decode(unknown: bytes) -> dict[FragmentId, bytes]:
    """Read portable Roaring bitmaps of row offsets by fragment from an Update's unknown fields."""
    offsets: dict[FragmentId, bytes] = {}
    for number, data in _fields(unknown):
        if number == _OFFSET_BITMAPS:
            key, bitmap = _entry(data)
            offsets[FragmentId(key)] = bitmap
    return offsets


def encode(offsets: Mapping[FragmentId, bytes]) -> bytes:
    """Write portable Roaring bitmaps of row offsets by fragment as a field of an Update."""
    parts: list[bytes] = []
    for key, bitmap in sorted(offsets.items()):
        entry = _tag(1, _VARINT) + _varint(key) + _sized(2, bitmap)
        parts.append(_sized(_OFFSET_BITMAPS, entry))
    return b"".join(parts)


def _sized(number: int, data: bytes) -> bytes:
    return _tag(number, _LENGTH_DELIMITED) + _varint(len(data)) + data


def _tag(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > _SEVEN_BITS:
        out.append(value & _SEVEN_BITS | _SEVEN_BITS + 1)
        value >>= 7
    out.append(value)
    return bytes(out)


def _entry(data: object) -> tuple[int, bytes]:
    if not isinstance(data, bytes):
        raise CorruptTableError(f"{_WHAT} are not bytes")
    fields = dict(_fields(data))
    key, bitmap = fields.get(1, 0), fields.get(2, b"")
    if not isinstance(key, int) or not isinstance(bitmap, bytes):
        raise CorruptTableError(f"{_WHAT} are not a bitmap per fragment")
    return key, bitmap


def _fields(data: bytes) -> list[tuple[int, object]]:
    message: Message = Empty()
    parse(message, data, what=_WHAT)
    fields = UnknownFieldSet(message)
    return [(fields[i].field_number, fields[i].data) for i in range(len(fields))]
