"""Roaring bitmaps of 32 and 64 bits in Lance's encoding."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.errors import CorruptTableError

_RUN_COOKIE = 0x303B
_PLAIN_COOKIE = 0x303A
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITSET_BYTES = 8192
_CONTAINER_VALUES = 1 << 16
_RUNS_WITHOUT_OFFSETS = 4


def of(numbers: npt.NDArray[np.uint32]) -> BitMap:
    """Return the bitmap of numbers; pyroaring would read a NumPy array one by one."""
    return BitMap(array("I", numbers.tobytes()))


def of_mask(mask: npt.NDArray[np.bool_]) -> BitMap:
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
            at = end_of(view, start)
            parts[high] = BitMap.deserialize(bytes(view[start:at]))
    except (struct.error, ValueError, OverflowError, MemoryError) as error:
        raise CorruptTableError(f"{what} cannot be decoded: {error}") from error
    if at != len(view) or len(parts) != count:
        raise CorruptTableError(f"{what} cannot be decoded: {len(view) - at} bytes too many")
    return parts
