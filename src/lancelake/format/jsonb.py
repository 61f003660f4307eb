"""JSONB: binary JSON, encoded, decoded, and looked into."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from json.encoder import encode_basestring
from struct import Struct, error, pack, unpack_from

import pyarrow as pa

from lancelake import errors
from lancelake.format.json_text import MAX_DEPTH, JsonValue, parse_extended, parse_standard

_ARRAY = 0x80000000
_OBJECT = 0x40000000
_SCALAR = 0x20000000
_CONTAINER_KIND = 0xE0000000
_COUNT = 0x1FFFFFFF

_NULL = 0x00000000
_STRING = 0x10000000
_NUMBER = 0x20000000
_FALSE = 0x30000000
_TRUE = 0x40000000
_CONTAINER = 0x50000000
_EXTENSION = 0x60000000
_VALUE_KIND = 0x70000000
_LENGTH = 0x0FFFFFFF

_ZERO = 0x00
_NAN = 0x10
_INFINITY = 0x20
_MINUS_INFINITY = 0x30
_INT = 0x40
_UINT = 0x50
_FLOAT = 0x60
_DECIMAL = 0x70
_INT_SIZES = (1, 2, 4, 8)

_U32 = Struct(">I")
_F64 = Struct(">d")
_SCALAR_HEADER = _U32.pack(_SCALAR)
_FIRST_VALUE = 8
_ENTRY_BYTES = {_ARRAY: 4, _OBJECT: 8}
_CONSTANTS = {_NULL: "null", _TRUE: "true", _FALSE: "false"}


def decode_array(array: pa.Array) -> pa.StringArray:
    """Return the texts of a column of binary JSON; nulls stay null."""
    texts = [None if value is None else to_text(value) for value in array.to_pylist()]
    result = pa.array(texts, pa.string())
    if not isinstance(result, pa.StringArray):
        raise errors.InvalidRequestError(
            f"{len(array)} rows of a json column have more than 2 GiB of text",
            action="Read fewer rows at a time.",
            rows=len(array),
        )
    return result


def encode_array(array: pa.Array) -> pa.LargeBinaryArray:
    """Return the binary JSON of a column of texts; nulls stay null."""
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    values = [None if text is None else from_text(text) for text in storage.to_pylist()]
    return pa.array(values, pa.large_binary())


def is_binary(data: bytes) -> bool:
    """Whether a stored value is binary JSON; some releases store text in places."""
    if data[:4] == _SCALAR_HEADER and len(data) >= _FIRST_VALUE:
        return True
    header = int.from_bytes(data[:4]) if len(data) >= _U32.size else 0
    return _fits_container(header, len(data))


def to_text(data: bytes) -> str:
    """Return the text of a value, as official releases print it."""
    if data[:4] == _SCALAR_HEADER and len(data) >= _FIRST_VALUE:
        (entry,) = _U32.unpack_from(data, 4)
        return _scalar_text(data, entry, start=_FIRST_VALUE, limit=len(data))
    header = int.from_bytes(data[:4]) if len(data) >= _U32.size else 0
    if _fits_container(header, len(data)):
        return _container_text(data)
    return _plain_text(data)


def from_text(text: str) -> bytes:
    """Return the bytes of a JSON text, or raise `SchemaMismatchError`."""
    try:
        return _encode(parse_standard(text))
    except (ValueError, OverflowError, RecursionError):
        # Half a surrogate pair, a huge integer, deep nesting, or no standard JSON.
        pass
    try:
        return _encode(parse_extended(text))
    except UnicodeEncodeError as cause:
        raise _not_storable("it is not valid Unicode") from cause


def _corrupt(reason: str, position: int) -> errors.CorruptTableError:
    return errors.CorruptTableError(
        f"A value of a json column is malformed: {reason} at byte {position}",
        reason=reason,
        position=position,
    )


def _not_storable(reason: str) -> errors.SchemaMismatchError:
    return errors.SchemaMismatchError(
        f"A value of a json column cannot be stored: {reason}",
        action="Pass valid JSON text.",
        reason=reason,
    )


def _plain_text(data: bytes) -> str:
    """Return a value that was stored as text, which pylance 4 does below the top level."""
    if not data:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError as cause:
        raise _corrupt("neither binary JSON nor text", cause.start) from cause
    if "\0" in text:
        raise _corrupt("no header", 0)
    return text


def _fits_container(header: int, size_bytes: int) -> bool:
    """Distinguish a container from text, whose first letters are far too large a count."""
    entry_bytes = _ENTRY_BYTES.get(header & _CONTAINER_KIND)
    return entry_bytes is not None and 4 + entry_bytes * (header & _COUNT) <= size_bytes


@dataclass(slots=True)
class _OpenContainer:
    """A container while its elements are printed."""

    labels: Iterator[str]
    entries: Iterator[int]
    offset: int
    limit: int
    closing: str


def _container_text(data: bytes) -> str:
    parts: list[str] = []
    stack = [_open(data, 0, len(data), parts)]
    while stack:
        container = stack[-1]
        for entry in container.entries:
            parts.append(next(container.labels))
            start = container.offset
            container.offset += entry & _LENGTH
            if entry & _VALUE_KIND == _CONTAINER:
                if container.offset > container.limit:
                    raise _corrupt("a container ends outside of its parent", start)
                stack.append(_open(data, start, container.offset, parts))
                break
            parts.append(_scalar_text(data, entry, start=start, limit=container.limit))
        else:
            parts.append(container.closing)
            stack.pop()
    return "".join(parts)


def _open(data: bytes, start: int, limit: int, parts: list[str]) -> _OpenContainer:
    header = int.from_bytes(data[start : start + 4]) if limit - start >= _U32.size else 0
    if not _fits_container(header, limit - start):
        raise _corrupt("no container header", start)
    count = header & _COUNT
    if header & _CONTAINER_KIND == _ARRAY:
        parts.append("[")
        entries = unpack_from(f">{count}I", data, start + 4)
        labels = _array_labels(count)
        return _OpenContainer(labels, iter(entries), start + 4 + 4 * count, limit, "]")
    parts.append("{")
    entries = unpack_from(f">{2 * count}I", data, start + 4)
    names, offset = _names(data, entries[:count], start + 4 + 8 * count, limit)
    return _OpenContainer(iter(names), iter(entries[count:]), offset, limit, "}")


def _array_labels(count: int) -> Iterator[str]:
    for position in range(count):
        yield "," if position else ""


def _names(data: bytes, entries: tuple[int, ...], offset: int, limit: int) -> tuple[list[str], int]:
    """Return what to print before each member, and where the values start."""
    labels: list[str] = []
    for entry in entries:
        if entry & _VALUE_KIND != _STRING:
            raise _corrupt("a member name that is not a string", offset)
        end = offset + (entry & _LENGTH)
        name = _string_text(data, offset, end, limit)
        labels.append(f",{name}:" if labels else f"{name}:")
        offset = end
    return labels, offset


def _scalar_text(data: bytes, entry: int, *, start: int, limit: int) -> str:
    kind = entry & _VALUE_KIND
    end = start + (entry & _LENGTH)
    if kind == _STRING:
        return _string_text(data, start, end, limit)
    if kind == _NUMBER:
        return _number_text(data, start, end, limit)
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    if kind == _EXTENSION:
        raise _unsupported("an extension value (date, timestamp, interval or bytes)")
    raise _corrupt("no known kind of value", start)


def _string_text(data: bytes, start: int, end: int, limit: int) -> str:
    if end > limit:
        raise _corrupt("a string without its end", start)
    try:
        return encode_basestring(data[start:end].decode())
    except UnicodeDecodeError as cause:
        raise _corrupt("a string that is not UTF-8", start) from cause


def _number_text(data: bytes, start: int, end: int, limit: int) -> str:
    if not start < end <= limit:
        raise _corrupt("a number without its end", start)
    kind = data[start]
    size_bytes = end - start - 1
    if kind == _UINT and size_bytes in _INT_SIZES:
        return str(int.from_bytes(data[start + 1 : end]))
    if kind == _INT and size_bytes in _INT_SIZES:
        return str(int.from_bytes(data[start + 1 : end], signed=True))
    if kind == _FLOAT and size_bytes == _F64.size:
        return _float_text(_F64.unpack_from(data, start + 1)[0])
    if kind == _ZERO:
        return "0"
    if kind in (_NAN, _INFINITY, _MINUS_INFINITY):
        return "null"
    if kind == _DECIMAL:
        raise _unsupported("a decimal number")
    raise _corrupt("no known kind of number", start)


def _unsupported(what: str) -> errors.UnsupportedError:
    return errors.UnsupportedError(
        f"A value of a json column has {what}, which JSON cannot express", found=what
    )


def _float_text(value: float) -> str:
    """Return the shortest digits that round-trip, from 1e-5 to 1e16 without exponent."""
    if not math.isfinite(value):
        return "null"
    text = repr(value)
    mantissa, mark, exponent = text.partition("e-")
    if not mark:
        return text
    if exponent != "05":
        return f"{mantissa}e-{int(exponent)}"
    sign = "-" if value < 0 else ""
    digits = mantissa.removeprefix("-").replace(".", "")
    return f"{sign}0.0000{digits}"


@dataclass(slots=True)
class _Unfinished:
    """A container while its elements are encoded."""

    kind: int
    count: int
    slot: int
    entries: list[int]
    values: Iterator[JsonValue]


def _encode(value: JsonValue) -> bytes:
    if not isinstance(value, list | dict):
        entry, data = _scalar_bytes(value)
        return pack(">II", _SCALAR, entry) + data
    parts: list[bytes] = []
    stack = [_start(value, parts)]
    while True:
        container = stack[-1]
        for child in container.values:
            if isinstance(child, list | dict):
                if len(stack) == MAX_DEPTH:
                    raise _not_storable(f"it has more than {MAX_DEPTH} levels of nesting")
                stack.append(_start(child, parts))
                break
            entry, data = _scalar_bytes(child)
            container.entries.append(entry)
            parts.append(data)
        else:
            size_bytes = _finish(container, parts)
            stack.pop()
            if not stack:
                return b"".join(parts)
            stack[-1].entries.append(_CONTAINER | _checked_size(size_bytes))


def _start(value: list[JsonValue] | dict[str, JsonValue], parts: list[bytes]) -> _Unfinished:
    slot = len(parts)
    # Replaced by the header once the lengths of all elements are known.
    parts.append(b"")
    if isinstance(value, list):
        return _Unfinished(_ARRAY, len(value), slot, [], iter(value))
    names = sorted(value)
    encoded = [name.encode() for name in names]
    parts.extend(encoded)
    entries = [_STRING | _checked_size(len(name)) for name in encoded]
    return _Unfinished(_OBJECT, len(value), slot, entries, iter([value[name] for name in names]))


def _finish(container: _Unfinished, parts: list[bytes]) -> int:
    entries = container.entries
    header = pack(f">{1 + len(entries)}I", container.kind | container.count, *entries)
    parts[container.slot] = header
    return len(header) + sum(entry & _LENGTH for entry in entries)


def _checked_size(size_bytes: int) -> int:
    if size_bytes > _LENGTH:
        raise _not_storable(f"a part of it takes {size_bytes} bytes, more than {_LENGTH}")
    return size_bytes


def _scalar_bytes(value: float | str | None) -> tuple[int, bytes]:
    """Return the entry (kind and length) of a scalar, and its bytes."""
    if isinstance(value, str):
        data = value.encode()
        return _STRING | _checked_size(len(data)), data
    if value is None:
        return _NULL, b""
    if isinstance(value, bool):
        return (_TRUE if value else _FALSE), b""
    data = _int_bytes(value) if isinstance(value, int) else _float_bytes(value)
    return _NUMBER | len(data), data


def _int_bytes(value: int) -> bytes:
    if value == 0:
        return bytes([_ZERO])
    if not -(2**63) <= value < 2**64:
        return _float_bytes(float(value))
    is_negative = value < 0
    bits = (~value).bit_length() + 1 if is_negative else value.bit_length()
    size_bytes = next(size for size in _INT_SIZES if bits <= 8 * size)
    kind = _INT if is_negative else _UINT
    return bytes([kind]) + value.to_bytes(size_bytes, signed=is_negative)


def _float_bytes(value: float) -> bytes:
    if math.isnan(value):
        return bytes([_NAN])
    if math.isinf(value):
        return bytes([_INFINITY if value > 0 else _MINUS_INFINITY])
    return bytes([_FLOAT]) + _F64.pack(value)


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
        if not is_binary(data):
            data = from_text(to_text(data))
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
        return to_text(self.stored())

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
            raise errors.CorruptTableError(msg) from cause

    def _values(self, entries: tuple[int, ...], first: int) -> Iterator[JsonNode]:
        for entry in entries:
            yield JsonNode(self.data, entry, first)
            first += entry & _LENGTH
