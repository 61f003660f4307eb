"""Navigation of binary JSON without decoding the whole value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from struct import Struct, error, unpack_from

from lancelake.errors import CorruptTableError
from lancelake.format import jsonb

_U32 = Struct(">I")
_SCALAR = 0x20000000
_COUNT = 0x1FFFFFFF
_LENGTH = 0x0FFFFFFF
_VALUE_KIND = 0x70000000
_STRING = 0x10000000
_CONTAINER = 0x50000000
_ARRAY = 0x80000000
_OBJECT = 0x40000000


class JsonKind(Enum):
    """Kinds of values."""

    NULL = 0x00000000
    STRING = _STRING
    NUMBER = 0x20000000
    FALSE = 0x30000000
    TRUE = 0x40000000
    ARRAY = _ARRAY
    OBJECT = _OBJECT | 1
    EXTENSION = 0x60000000


@dataclass(frozen=True, slots=True)
class JsonNode:
    """A value: the bytes that contain it, its entry, and its position."""

    data: bytes
    entry: int
    start: int

    @staticmethod
    def root(data: bytes) -> JsonNode:
        """Return the root of a stored value, which may also be JSON text."""
        if not jsonb.is_binary(data):
            data = jsonb.from_text(jsonb.to_text(data))
        (header,) = _U32.unpack_from(data)
        if header == _SCALAR:
            return JsonNode(data, _U32.unpack_from(data, 4)[0], 8)
        return JsonNode(data, _CONTAINER | len(data), 0)

    @property
    def kind(self) -> JsonKind:
        """Kind of the value."""
        kind = self.entry & _VALUE_KIND
        if kind != _CONTAINER:
            return JsonKind(kind)
        return JsonKind.ARRAY if self._header & _ARRAY else JsonKind.OBJECT

    def stored(self) -> bytes:
        """Return the value on its own, as it would be stored."""
        payload = self.data[self.start : self.start + (self.entry & _LENGTH)]
        if self.entry & _VALUE_KIND == _CONTAINER:
            return payload
        return _U32.pack(_SCALAR) + _U32.pack(self.entry) + payload

    def text(self) -> str:
        """Return the value as JSON text."""
        return jsonb.to_text(self.stored())

    def string(self) -> str:
        """Return the characters of a string."""
        return self.data[self.start : self.start + (self.entry & _LENGTH)].decode()

    def items(self) -> list[JsonNode]:
        """Return the values of an array; none of any other value."""
        if self.kind is not JsonKind.ARRAY:
            return []
        count = self._header & _COUNT
        entries = self._entries(4, count)
        return list(self._values(entries, self.start + 4 + 4 * count))

    def members(self) -> dict[str, JsonNode]:
        """Return the values of an object by name; none of any other value."""
        if self.kind is not JsonKind.OBJECT:
            return {}
        count = self._header & _COUNT
        keys = self._entries(4, count)
        names = self._values(keys, self.start + 4 + 8 * count)
        first = self.start + 4 + 8 * count + sum(key & _LENGTH for key in keys)
        values = self._values(self._entries(4 + 4 * count, count), first)
        return {name.string(): value for name, value in zip(names, values, strict=True)}

    @property
    def _header(self) -> int:
        return int(_U32.unpack_from(self.data, self.start)[0])

    def _entries(self, offset: int, count: int) -> tuple[int, ...]:
        try:
            return unpack_from(f">{count}I", self.data, self.start + offset)
        except error as cause:
            msg = "A value of a json column is malformed: it ends early"
            raise CorruptTableError(msg) from cause

    def _values(self, entries: tuple[int, ...], first: int) -> Iterator[JsonNode]:
        for entry in entries:
            yield JsonNode(self.data, entry, first)
            first += entry & _LENGTH
