"""Sets of rows, and answers of indices.

For row addresses the high word is the fragment and the low word the row within it.

Rows in neither set are null. Where an index is not exact it gives bounds, so that results can be
combined by AND, OR and NOT without losing a row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.errors import CorruptTableError
from lancelake.format import row_address
from lancelake.format.deletion import decode_bitmap

U64Array = npt.NDArray[np.uint64]
BoolArray = npt.NDArray[np.bool_]

_BYTE = np.uint64(3)
_BIT = np.uint64(7)
_HIGH = np.uint64(32)
# Of a table with an entry for each high word.
_MAX_LIMITS = 1 << 20
_HEAD = struct.Struct("<I")
_ENTRY = struct.Struct("<II")


def has_repeats(parts: Sequence[U64Array]) -> bool:
    """Whether an id is there twice."""
    ids = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
    return bool((ids[1:] == ids[:-1]).any())


@dataclass(frozen=True, slots=True)
class RowIds:
    """Immutable set of row ids without empty bitmaps."""

    parts: Mapping[int, BitMap] = field(default_factory=dict)

    @staticmethod
    def of(ids: U64Array) -> RowIds:
        """Return the set of these ids, in any order."""
        return RowIds(dict(row_address.by_fragment(ids).items())) if len(ids) else EMPTY

    @staticmethod
    def within(parts: Mapping[int, BitMap]) -> RowIds:
        """Return the set with these low words per high word."""
        return RowIds({high: part for high, part in parts.items() if part})

    def to_array(self) -> U64Array:
        """Return the ids, ascending."""
        return row_address.ascending(self.parts)

    def only(self, highs: Collection[int]) -> RowIds:
        """Return the ids with one of these high words."""
        return RowIds({high: part for high, part in self.parts.items() if high in highs})

    @property
    def size_bytes(self) -> int:
        """Estimate of the memory of the set."""
        statistics = [part.get_statistics() for part in self.parts.values()]
        return sum(
            of["n_bytes_array_containers"]
            + of["n_bytes_run_containers"]
            + of["n_bytes_bitset_containers"]
            for of in statistics
        )

    def tester(self) -> Callable[[U64Array], BoolArray]:
        """Return a membership test for arrays of ids, fast for many calls."""
        if not self.parts:
            return lambda ids: np.zeros(len(ids), dtype=np.bool_)
        highs = np.array(sorted(self.parts), dtype=np.uint64)
        parts = [self.parts[int(high)] for high in highs]
        ends = np.array([part.max() + 1 for part in parts], dtype=np.uint64)
        has_gaps = any(len(part) <= part.max() for part in parts)
        if not has_gaps and highs[-1] < _MAX_LIMITS:
            return _below_limits(highs, ends)
        bits = _Bits.of(parts) if has_gaps else None

        def test(ids: U64Array) -> BoolArray:
            high, low = row_address.fragment_of(ids), row_address.offset_of(ids)
            place = np.minimum(np.searchsorted(highs, high), len(highs) - 1)
            is_member: BoolArray = (highs[place] == high) & (low < ends[place])
            return is_member if bits is None else bits.test(place, low, is_member)

        return test

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __contains__(self, row_id: int) -> bool:
        high, low = row_address.split(row_id)
        part = self.parts.get(high)
        return part is not None and low in part

    def __or__(self, other: RowIds) -> RowIds:
        if not self.parts or not other.parts:
            return self if self.parts else other
        return self._join(other, self.parts.keys() | other.parts.keys(), BitMap.union)

    def __and__(self, other: RowIds) -> RowIds:
        return self._join(other, self.parts.keys() & other.parts.keys(), BitMap.intersection)

    def __sub__(self, other: RowIds) -> RowIds:
        return self._join(other, self.parts.keys(), BitMap.difference)

    def _join(
        self, other: RowIds, highs: Iterable[int], join: Callable[[BitMap, BitMap], BitMap]
    ) -> RowIds:
        none = BitMap()
        parts = {h: join(self.parts.get(h, none), other.parts.get(h, none)) for h in highs}
        return RowIds.within(parts)


def _below_limits(highs: U64Array, ends: U64Array) -> Callable[[U64Array], BoolArray]:
    """Return a membership test for sets without gaps, from the least id of each high word on."""
    limits = np.arange(int(highs[-1]) + 2, dtype=np.uint64) << _HIGH
    limits[highs.astype(np.intp)] += ends
    last = np.uint64(len(limits) - 1)

    def test(ids: U64Array) -> BoolArray:
        high = row_address.fragment_of(ids)
        is_member: BoolArray = ids < limits[np.minimum(high, last, out=high).view(np.intp)]
        return is_member

    return test


@dataclass(frozen=True, slots=True)
class _Bits:
    """Bitmaps as one bit for each number up to the greatest, one after the other."""

    starts: U64Array
    bits: npt.NDArray[np.uint8]

    @staticmethod
    def of(parts: Sequence[BitMap]) -> _Bits:
        tables = [_bit_table(part) for part in parts]
        sizes = np.array([len(table) for table in tables], dtype=np.uint64)
        return _Bits(np.cumsum(sizes) - sizes, np.concatenate(tables))

    def test(self, place: npt.NDArray[np.int64], low: U64Array, is_known: BoolArray) -> BoolArray:
        """Return which numbers are in the bitmap of their place, of those that can be."""
        at = np.where(is_known, self.starts[place] + (low >> _BYTE), np.uint64(0))
        bit = (self.bits[at] >> (low & _BIT).astype(np.uint8)) & 1
        is_member: BoolArray = is_known & (bit == 1)
        return is_member


def _bit_table(part: BitMap) -> npt.NDArray[np.uint8]:
    numbers = np.frombuffer(part.to_array(), dtype=np.uint32)
    flags = np.zeros(int(numbers[-1]) + 1, dtype=np.bool_)
    flags[numbers] = True
    return np.packbits(flags, bitorder="little")


EMPTY = RowIds()


def union(sets: Iterable[RowIds]) -> RowIds:
    """Return the ids that are in any of the sets."""
    parts: dict[int, list[BitMap]] = {}
    for each in sets:
        for high, part in each.parts.items():
            parts.setdefault(high, []).append(part)
    return RowIds({h: p[0] if len(p) == 1 else BitMap.union(*p) for h, p in parts.items()})


def encode_tree_map(ids: RowIds) -> bytes:
    """Encode a set for index files: a bitmap for each high word, ascending."""
    return join_parts({high: bytes(part.serialize()) for high, part in ids.parts.items()})


def join_parts(parts: Mapping[int, bytes]) -> bytes:
    """Encode a set whose bitmaps are encoded."""
    out = [_HEAD.pack(len(parts))]
    for high, data in sorted(parts.items()):
        out += [_ENTRY.pack(high, len(data)), data]
    return b"".join(out)


def decode_tree_map(
    data: bytes, *, rows_of: Callable[[int], int | None] = lambda _: None, what: str = "row ids"
) -> RowIds:
    """Decode a set; an entry without bytes means all rows of a fragment."""
    return RowIds.within(
        {
            high: decode_bitmap(part, what=what) if part else _whole(high, rows_of, what)
            for high, part in split_parts(data, what=what).items()
        }
    )


def split_parts(data: bytes, *, what: str = "row ids") -> dict[int, bytes]:
    """Return the encoded bitmaps of a set; one without bytes means all rows of a fragment."""
    parts: dict[int, bytes] = {}
    try:
        (count,) = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(count):
            high, size = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            if len(data) < at + size:
                raise CorruptTableError(f"{what} end within an entry")
            parts[high] = data[at : at + size]
            at += size
    except struct.error as error:
        raise CorruptTableError(f"{what} end within an entry") from error
    return parts


def _whole(high: int, rows_of: Callable[[int], int | None], what: str) -> BitMap:
    rows = rows_of(high)
    if rows is None:
        msg = f"{what} refer to all rows of fragment {high}, which the table does not have"
        raise CorruptTableError(msg)
    return BitMap(range(rows))


@dataclass(frozen=True, slots=True)
class RowMask:
    """Rows of a set or, if inverted, all others."""

    ids: RowIds
    is_inverted: bool = False

    def __invert__(self) -> RowMask:
        return RowMask(self.ids, not self.is_inverted)

    def __and__(self, other: RowMask) -> RowMask:
        match self.is_inverted, other.is_inverted:
            case False, False:
                return RowMask(self.ids & other.ids)
            case False, True:
                return RowMask(self.ids - other.ids)
            case True, False:
                return RowMask(other.ids - self.ids)
            case _:
                return RowMask(self.ids | other.ids, is_inverted=True)

    def __or__(self, other: RowMask) -> RowMask:
        return ~(~self & ~other)


NO_ROWS = RowMask(EMPTY)
ALL_ROWS = RowMask(EMPTY, is_inverted=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """Bounds of the rows for which a condition is true, and of those for which it is false."""

    surely_true: RowMask
    maybe_true: RowMask
    surely_false: RowMask
    maybe_false: RowMask

    @staticmethod
    def exact(true: RowIds, null: RowIds = EMPTY) -> Answer:
        """Return the result of an index with exact rows and null rows."""
        hits, misses = RowMask(true), RowMask(true | null, is_inverted=True)
        return Answer(hits, hits, misses, misses)

    @staticmethod
    def never_false(true: RowIds) -> Answer:
        """Return the result of a condition that is null where it is not true."""
        hits = RowMask(true)
        return Answer(hits, hits, NO_ROWS, NO_ROWS)

    @staticmethod
    def true_only(true: RowIds) -> Answer:
        """Return the result of an index with exact rows and unknown nulls."""
        hits = RowMask(true)
        return Answer(hits, hits, NO_ROWS, ~hits)

    @staticmethod
    def at_most(true: RowIds) -> Answer:
        """Return the result of an index with candidate rows only."""
        return Answer(NO_ROWS, RowMask(true), NO_ROWS, ALL_ROWS)

    def mapped(self, change: Callable[[RowIds], RowIds]) -> Answer:
        """Return the answer with other ids for the same rows; exact answers stay exact."""
        true, false = (
            RowMask(change(mask.ids), mask.is_inverted)
            for mask in (self.maybe_true, self.maybe_false)
        )
        sure = (
            most if mask is before else RowMask(change(mask.ids), mask.is_inverted)
            for mask, before, most in (
                (self.surely_true, self.maybe_true, true),
                (self.surely_false, self.maybe_false, false),
            )
        )
        surely_true, surely_false = sure
        return Answer(surely_true, true, surely_false, false)

    def doubting(self, rows: RowIds) -> Answer:
        """Return the answer of an index that may name these rows by values they no longer have.

        It names them by their current values, too: only what it does not name is extended.
        """
        if not rows:
            return self

        def extend(mask: RowMask) -> RowMask:
            return RowMask(mask.ids - rows, is_inverted=True) if mask.is_inverted else mask

        certain = RowMask(rows, is_inverted=True)
        return Answer(
            self.surely_true & certain,
            extend(self.maybe_true),
            self.surely_false & certain,
            extend(self.maybe_false),
        )

    @property
    def is_exact(self) -> bool:
        """Whether the rows for which the condition is true are known."""
        return self.surely_true is self.maybe_true

    def __and__(self, other: Answer) -> Answer:
        true = self.maybe_true & other.maybe_true
        false = self.maybe_false | other.maybe_false
        if self._is_known and other._is_known:
            return Answer(true, true, false, false)
        return Answer(
            self.surely_true & other.surely_true,
            true,
            self.surely_false | other.surely_false,
            false,
        )

    def __or__(self, other: Answer) -> Answer:
        return ~(~self & ~other)

    def __invert__(self) -> Answer:
        return Answer(self.surely_false, self.maybe_false, self.surely_true, self.maybe_true)

    @property
    def _is_known(self) -> bool:
        return self.is_exact and self.surely_false is self.maybe_false


UNKNOWN = Answer(NO_ROWS, ALL_ROWS, NO_ROWS, ALL_ROWS)
"""Result of a condition that no index supports."""
