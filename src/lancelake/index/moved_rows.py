"""Rows that a compaction moved after an index was built.

All recorded moves apply to every index of addresses, regardless of the coverage in its entry: a
later compaction updates the coverage of an entry, never the addresses in its files.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import CorruptTableError, UnsupportedError
from lancelake.format.frozen import parse
from lancelake.format.ids import OFFSET_BITS
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexDetails, IndexMetadata
from lancelake.format.row_address import decode_treemap, fragment_of, offset_of
from lancelake.index.kind import DROPPED
from lancelake.index.row_sets import BoolArray, RowIds, U64Array, union
from lancelake.proto import table_pb2
from lancelake.storage.store import confined_path
from lancelake.txn.fragments import has_hidden_moves, reuse_details

_VERSION = 0
_SHIFT = np.uint64(OFFSET_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedGroup:
    """Fragments whose live rows were written to others, in their order."""

    old: frozenset[int]
    survivors: dict[int, BitMap]
    """Live rows of each old fragment."""
    firsts: dict[int, int]
    """Number of live rows before those of an old fragment."""
    new_fragments: U64Array
    new_ends: U64Array
    """Cumulative row count at the end of each new fragment."""
    offsets: dict[int, npt.NDArray[np.uint32]] = field(default_factory=dict, compare=False)
    """Live rows of old fragments as arrays, computed on first use."""

    @staticmethod
    def of(message: table_pb2.FragmentReuseIndexDetails.Group) -> MovedGroup:
        """Decode a group; raise if it moves more rows than the new fragments have."""
        old = frozenset(f.id for f in message.old_fragments)
        what = "addresses of moved rows"
        survivors = decode_treemap(message.changed_row_addrs, what=what)
        firsts: dict[int, int] = {}
        total = 0
        for fragment in sorted(survivors):
            firsts[fragment] = total
            total += len(survivors[fragment])
        ends = np.cumsum([f.physical_rows for f in message.new_fragments], dtype=np.uint64)
        room = int(ends[-1]) if len(ends) else 0
        if total > room or not survivors.keys() <= old:
            msg = f"{total} rows of fragments {sorted(old)} were moved to fragments of {room} rows"
            raise CorruptTableError(msg)
        return MovedGroup(
            old=old,
            survivors=survivors,
            firsts=firsts,
            new_fragments=np.array([f.id for f in message.new_fragments], dtype=np.uint64),
            new_ends=ends,
        )

    def places(self, fragment: int, rows: U64Array) -> U64Array:
        """Return the new addresses of rows of an old fragment; `DROPPED` for deleted ones."""
        ranks, is_live = self._ranks(fragment, rows)
        addresses = np.full(len(rows), DROPPED, dtype=np.uint64)
        number = ranks[is_live].astype(np.uint64) + np.uint64(self.firsts.get(fragment, 0))
        file = np.searchsorted(self.new_ends, number, side="right")
        starts = np.concatenate([np.zeros(1, dtype=np.uint64), self.new_ends[:-1]])
        addresses[is_live] = (self.new_fragments[file] << _SHIFT) | (number - starts[file])
        return addresses

    def _ranks(self, fragment: int, rows: U64Array) -> tuple[npt.NDArray[Any], BoolArray]:
        """Return how many live rows come before each row, and whether it is live."""
        live = self.survivors.get(fragment)
        if not live:
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        if live.max() + 1 == len(live):
            return rows, rows < np.uint64(len(live))
        live_rows = self.offsets.get(fragment)
        if live_rows is None:
            live_rows = np.frombuffer(live.to_array(), dtype=np.uint32)
            self.offsets[fragment] = live_rows
        wanted = rows.astype(np.uint32)
        ranks = np.searchsorted(live_rows, wanted)
        is_live = ranks < len(live_rows)
        is_live[is_live] = live_rows[ranks[is_live]] == wanted[is_live]
        return ranks, is_live


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMoves:
    """Recorded moves of rows: the groups of each compaction, in order."""

    compactions: tuple[tuple[MovedGroup, ...], ...] = ()

    @staticmethod
    def of(indices: Sequence[IndexMetadata]) -> RowMoves:
        """Read the moves that index entries record.

        Raise UnsupportedError if they are of an unknown version, or recorded in a file that has
        not been read into the entry.
        """
        entries = tuple(indices)
        record = reuse_details(entries)
        if record is None:
            return NO_MOVES
        version = next(i.index_version or 0 for i in entries if i.name == FRAGMENT_REUSE)
        if version > _VERSION:
            raise UnsupportedError(f"moved rows are recorded in version {version}")
        if has_hidden_moves(entries):
            raise UnsupportedError("moved rows are recorded in a file")
        return _read(record.SerializeToString(deterministic=True))

    def __bool__(self) -> bool:
        return bool(self.compactions)

    def row_map(self, ids: U64Array) -> U64Array:
        """Return the current addresses of rows; `DROPPED` for those that a compaction removed."""
        now = ids.copy()
        for groups in self.compactions:
            by_fragment = {fragment: group for group in groups for fragment in group.old}
            fragments = fragment_of(now)
            order = np.argsort(fragments, kind="stable")
            numbers, starts = np.unique(fragments[order], return_index=True)
            bounds = itertools.pairwise([*starts.tolist(), len(order)])
            for fragment, (start, stop) in zip(numbers.tolist(), bounds, strict=True):
                group = by_fragment.get(fragment)
                if group is not None:
                    places = order[start:stop]
                    now[places] = group.places(fragment, offset_of(now[places]))
        return now

    def rows(self, ids: RowIds) -> RowIds:
        """Return a set of rows by their current addresses."""
        for groups in self.compactions:
            old = {fragment for group in groups for fragment in group.old}
            if not old.isdisjoint(ids.parts):
                stayed = ids.only(ids.parts.keys() - old)
                ids = union([stayed, *(_move(group, ids) for group in groups)])
        return ids


NO_MOVES = RowMoves()


@functools.lru_cache(maxsize=8)
def _read(record: bytes) -> RowMoves:
    """Decode a record; cached because all segments of a version use the same one."""
    versions = table_pb2.FragmentReuseIndexDetails.FromString(record).inline.versions
    compactions = sorted(versions, key=lambda version: version.dataset_version)
    return RowMoves(
        compactions=tuple(tuple(map(MovedGroup.of, each.groups)) for each in compactions)
    )


def _move(group: MovedGroup, ids: RowIds) -> RowIds:
    parts = []
    for fragment in group.old & ids.parts.keys():
        rows = np.frombuffer(ids.parts[fragment].to_array(), dtype=np.uint32).astype(np.uint64)
        places = group.places(fragment, rows)
        parts.append(RowIds.of(places[places != np.uint64(DROPPED)]))
    return union(parts)


TYPE_URL = "/lance.table.FragmentReuseIndexDetails"

Moves = table_pb2.FragmentReuseIndexDetails


def recorded_moves(base: Snapshot) -> Moves | None:
    """Read all recorded moves of a version, inline; None if there are none."""
    entry = next((i for i in base.indices if i.name == FRAGMENT_REUSE), None)
    if entry is None or entry.details is None:
        return None
    details = Moves()
    parse(details, entry.details.value, what="fragment reuse details")
    if details.WhichOneof("content") != "external":
        return details
    file = details.external
    folder = base.files.index_dir(entry)
    data = folder.store.get_range(
        f"{folder.path}/{confined_path(file.path)}", start=file.offset, length=file.size
    )
    inline = Moves()
    parse(inline.inline, data, what="fragment reuse details")
    inline.inline.SetInParent()
    return inline


def with_inline_moves(base: Snapshot) -> tuple[IndexMetadata, ...]:
    """Return the index entries of a version; moves that are recorded in a file are read."""
    if not has_hidden_moves(base.indices):
        return base.indices
    moves = recorded_moves(base) or Moves()
    inline = IndexDetails(type_url=TYPE_URL, value=moves.SerializeToString())
    return tuple(
        replace(i, details=inline) if i.name == FRAGMENT_REUSE else i for i in base.indices
    )
