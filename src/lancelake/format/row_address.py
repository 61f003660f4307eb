"""Row addresses, and the bitmaps that hold sets of them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from pyroaring import BitMap

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.format.frozen import parse
from lancelake.format.ids import MAX_ROWS, OFFSET_BITS, FragmentId
from lancelake.format.rowids import U64Array

_RUN_COOKIE = 0x303B
_PLAIN_COOKIE = 0x303A
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192
_CONTAINER_VALUES = 1 << 16
_RUNS_WITHOUT_OFFSETS = 4


def bitmap_of(numbers: npt.NDArray[np.uint32]) -> BitMap:
    """Return the bitmap of numbers; pyroaring would read a NumPy array one by one."""
    return BitMap(array("I", numbers.tobytes()))


def bitmap_of_mask(mask: npt.NDArray[np.bool_]) -> BitMap:
    """Return the bitmap of the positions that are true, for many of them."""
    packed = np.packbits(mask, bitorder="little")
    keys: list[tuple[int, int]] = []
    containers: list[bytes] = []
    for number, start in enumerate(range(0, len(packed), _BITSET_BYTES)):
        bits = packed[start : start + _BITSET_BYTES]
        first = start * 8
        count = int(np.count_nonzero(mask[first : first + _CONTAINER_VALUES]))
        if not count:
            continue
        keys.append((number, count - 1))
        if count > _MAX_ARRAY:
            containers.append(bits.tobytes().ljust(_BITSET_BYTES, b"\0"))
        else:
            values = np.flatnonzero(mask[first : first + _CONTAINER_VALUES])
            containers.append(values.astype("<u2").tobytes())
    sizes = [len(data) for data in containers]
    head = 8 + 8 * len(keys)
    places = np.concatenate([[head], head + np.cumsum(sizes)]).astype("<u4")[: len(keys)]
    header = np.array([_PLAIN_COOKIE, len(keys)], dtype="<u4").tobytes()
    heads = np.array(keys, dtype="<u2").tobytes()
    return BitMap.deserialize(b"".join((header, heads, places.tobytes(), *containers)))


def ensure_well_formed(data: bytes) -> None:
    """Raise ValueError unless every container is complete, ordered and of the stated size."""
    end = end_of(memoryview(data), 0)
    if end != len(data):
        msg = f"{len(data)} bytes where the containers take {end}"
        raise ValueError(msg)


def upper_bound(data: bytes) -> int | None:
    """Return an upper bound of the values of a bitmap from its ends; None if they have none.

    ValueError for a header that is not that of a bitmap.
    """
    runs, position, count = _header(memoryview(data))
    if runs is not None or not count:
        return None
    high, size = _numbers(memoryview(data), position + 4 * (count - 1), 2).tolist()
    low = int.from_bytes(data[-2:], "little") if size < _MAX_ARRAY else _CONTAINER_VALUES - 1
    return int(high * _CONTAINER_VALUES + low)


def end_of(data: memoryview, start: int) -> int:
    """Return the end of the bitmap at a position; ValueError if it is damaged."""
    return start + _size(data[start:])


def _size(view: memoryview) -> int:
    runs, position, count = _header(view)
    heads = _numbers(view, position, 2 * count)
    if not _ascending(heads[::2]):
        raise ValueError("containers are out of order")
    position += 4 * count
    if runs is None or count >= _RUNS_WITHOUT_OFFSETS:
        position += len(_slice(view, position, 4 * count))
    sizes = heads[1::2].astype(np.int64) + 1
    if runs is None and not (sizes > _MAX_ARRAY).any():
        return position + _ensure_arrays(view, position, sizes)
    is_run = np.zeros(count, dtype=np.bool_)
    if runs is not None:
        is_run = np.unpackbits(np.frombuffer(runs, np.uint8), bitorder="little")[:count] == 1
    others = np.flatnonzero(is_run | (sizes > _MAX_ARRAY)).tolist()
    index = 0
    for other in [*others, count]:
        position += _ensure_arrays(view, position, sizes[index:other])
        if other < count:
            ensure = _ensure_runs if is_run[other] else _ensure_bitset
            position += ensure(view, position, int(sizes[other]))
        index = other + 1
    return position


def _header(view: memoryview) -> tuple[bytes | None, int, int]:
    cookie = int.from_bytes(_slice(view, 0, 4), "little")
    if cookie & 0xFFFF == _RUN_COOKIE:
        count = (cookie >> 16) + 1
        size = (count + 7) // 8
        return bytes(_slice(view, 4, size)), 4 + size, count
    if cookie == _PLAIN_COOKIE:
        count = int.from_bytes(_slice(view, 4, 4), "little")
        if count <= _MAX_CONTAINERS:
            return None, 8, count
    raise ValueError("the header is not that of a bitmap")


def _ensure_arrays(view: memoryview, start: int, sizes: npt.NDArray[np.int64]) -> int:
    """Check containers that follow one another at once: there may be thousands of small ones."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    values = _numbers(view, start, total)
    rises = values[1:] > values[:-1]
    rises[ends[:-1] - 1] = True
    if not rises.all():
        raise ValueError("values are out of order")
    return 2 * total


def _ensure_bitset(view: memoryview, start: int, cardinality: int) -> int:
    words = np.frombuffer(_slice(view, start, _BITSET_BYTES), dtype="<u8")
    if int(np.bitwise_count(words).sum()) != cardinality:
        raise ValueError("the number of values of a container does not match its header")
    return _BITSET_BYTES


def _ensure_runs(view: memoryview, start: int, cardinality: int) -> int:
    count = int.from_bytes(_slice(view, start, 2), "little")
    pairs = _numbers(view, start + 2, 2 * count).reshape(-1, 2)
    firsts = pairs[:, 0].astype(np.int64)
    lasts = firsts + pairs[:, 1]
    fits = bool(np.all(lasts < 1 << 16)) and bool(np.all(firsts[1:] > lasts[:-1]))
    if not fits or int((lasts - firsts + 1).sum()) != cardinality:
        raise ValueError("runs overlap or do not add up")
    return 2 + 4 * count


def _ascending(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _numbers(view: memoryview, start: int, count: int) -> npt.NDArray[np.uint16]:
    if start + 2 * count > len(view):
        raise ValueError("it ends too early")
    return np.frombuffer(view, dtype="<u2", count=count, offset=start)


def _slice(view: memoryview, start: int, size: int) -> memoryview:
    if start + size > len(view):
        raise ValueError("it ends too early")
    return view[start : start + size]


_COUNT = struct.Struct("<Q")
_HIGH = struct.Struct("<I")


def encode_treemap(parts: Mapping[int, BitMap]) -> bytes:
    """Write the low words of each high word; empty bitmaps are omitted."""
    present = sorted((high, part) for high, part in parts.items() if part)
    entries = [_HIGH.pack(high) + bytes(part.serialize()) for high, part in present]
    return _COUNT.pack(len(entries)) + b"".join(entries)


def decode_treemap(data: bytes, *, what: str) -> dict[int, BitMap]:
    """Decode the low words of each high word; raise for damaged bytes."""
    view = memoryview(data)
    parts: dict[int, BitMap] = {}
    try:
        (count,) = _COUNT.unpack_from(view)
        at = _COUNT.size
        for _ in range(count):
            (high,) = _HIGH.unpack_from(view, at)
            start = at + _HIGH.size
            at = end_of(view, start)
            parts[high] = BitMap.deserialize(bytes(view[start:at]))
    except (struct.error, ValueError, OverflowError, MemoryError) as error:
        raise CorruptTableError(f"{what} cannot be decoded: {error}") from error
    if at != len(view) or len(parts) != count:
        raise CorruptTableError(f"{what} cannot be decoded: {len(view) - at} bytes too many")
    return parts


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
        return {FragmentId(int(fragments[0])): bitmap_of(in_order(offsets))}
    starts = np.flatnonzero(fragments[1:] != fragments[:-1]) + 1
    numbers = fragments[np.concatenate([[0], starts])].tolist()
    parts = np.split(offsets, starts)
    return {FragmentId(i): bitmap_of(in_order(p)) for i, p in zip(numbers, parts, strict=True)}


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
    return {FragmentId(i): bitmap_of_mask(p) for i, p in zip(ids.tolist(), parts, strict=True)}


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


_OFFSET_BITMAPS = 10
_VARINT = 0
_LENGTH_DELIMITED = 2
_SEVEN_BITS = 0x7F
_WHAT = "updated offsets of an update"


def decode_offsets(unknown: bytes) -> dict[FragmentId, bytes]:
    """Read portable Roaring bitmaps of row offsets by fragment from an Update's unknown fields."""
    offsets: dict[FragmentId, bytes] = {}
    for number, data in _fields(unknown):
        if number == _OFFSET_BITMAPS:
            key, bitmap = _entry(data)
            offsets[FragmentId(key)] = bitmap
    return offsets


def encode_offsets(offsets: Mapping[FragmentId, bytes]) -> bytes:
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
