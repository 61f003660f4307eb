"""Row sets by key as index files store them: filtered and merged.

A set is a bitmap for each high word of its row ids. Bitmaps that do not change stay encoded: a
refresh leaves most of them as they are.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from pyroaring import BitMap

from lancelake.format import deletion, roaring
from lancelake.index.order import Key
from lancelake.index.row_ids import RowIds

StoredSet: TypeAlias = Mapping[int, bytes]
"""The encoded bitmap of each high word."""
KeyedStoredSet: TypeAlias = tuple[Key | None, StoredSet]


def stored(sets: Iterable[tuple[Key | None, RowIds]]) -> Iterator[KeyedStoredSet]:
    """Encode the rows of each key."""
    for key, ids in sets:
        yield key, stored_set(ids)


def stored_set(ids: RowIds) -> StoredSet:
    """Encode a set."""
    return {high: _encoded(part) for high, part in ids.parts.items()}


def merged(streams: Sequence[Iterable[KeyedStoredSet]]) -> Iterator[KeyedStoredSet]:
    """Yield the rows of each key of any stream; a null key comes first."""
    if len(streams) == 1:
        yield from streams[0]
        return
    together = heapq.merge(*streams, key=lambda item: (item[0] is not None, item[0]))
    for key, same in itertools.groupby(together, key=lambda item: item[0]):
        yield key, _union([parts for _, parts in same])


def only(sets: Iterable[KeyedStoredSet], wanted: RowIds | None) -> Iterator[KeyedStoredSet]:
    """Yield the rows of each key that are in a set, all where there is none."""
    if wanted is None:
        yield from sets
        return
    ends = {high: _end(part) for high, part in wanted.parts.items()}
    for key, parts in sets:
        left: dict[int, bytes] = {}
        for high, data in parts.items():
            if high not in ends:
                continue
            kept = data if _is_below(data, ends[high]) else _common(data, wanted.parts[high])
            if kept:
                left[high] = kept
        if left:
            yield key, left


def _end(part: BitMap) -> int:
    """Return the end of a bitmap of all numbers below it; 0 for any other bitmap."""
    return len(part) if part.max() == len(part) - 1 else 0


def _is_below(data: bytes, end: int) -> bool:
    if not end:
        return False
    try:
        bound = roaring.upper_bound(data)
    except ValueError:
        return False  # decoding reports the damage
    return bound is not None and bound < end


def _common(data: bytes, wanted: BitMap) -> bytes:
    found = _decoded(data) & wanted
    return _encoded(found) if found else b""


def _union(sets: Sequence[StoredSet]) -> StoredSet:
    if len(sets) == 1:
        return sets[0]
    parts: dict[int, list[bytes]] = {}
    for each in sets:
        for high, data in each.items():
            parts.setdefault(high, []).append(data)
    return {
        high: same[0] if len(same) == 1 else _encoded(BitMap.union(*map(_decoded, same)))
        for high, same in parts.items()
    }


def _decoded(data: bytes) -> BitMap:
    return deletion.decode_bitmap(data, what="row ids of an index file")


def _encoded(part: BitMap) -> bytes:
    return bytes(part.serialize())
