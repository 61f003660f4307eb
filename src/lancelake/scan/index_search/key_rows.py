"""Rows of a version that have one of several keys, from indices alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import known_deletions
from lancelake.errors import CorruptTableError
from lancelake.expr.condition import Column
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.row_address import fragment_of, offset_of, row_addresses
from lancelake.index.coverage import Coverage
from lancelake.index.key_range import KeyPoints
from lancelake.index.kind import IdKind, PointSegment
from lancelake.index.order import Positions
from lancelake.index.row_ids import U64Array
from lancelake.scan.count import physical_rows
from lancelake.scan.index_search.row_places import row_places
from lancelake.scan.index_search.sources import IndexSource, IndexSources, named_failures


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRows:
    """Live rows with one of several keys: the number of the key and the address of each."""

    fragments: BitMap
    """Fragments of which all such rows are known."""
    points: Positions
    addresses: U64Array


def rows_with_keys(snapshot: Snapshot, column: Column, wanted: KeyPoints) -> KeyRows:
    """Ask the indices that store the key of each row."""
    known = BitMap()
    parts: list[tuple[Positions, U64Array]] = []
    for source in IndexSources(snapshot).of(column):
        fragments = source.coverage.fragments - known
        if not fragments or not isinstance(source.segment, PointSegment):
            continue
        if source.coverage.moves:
            continue  # its addresses are those before a compaction
        with named_failures(source.index):
            found = _live(snapshot, source, source.segment, fragments, wanted)
        if found is not None:
            known |= fragments
            parts.append(found)
    points, addresses = _joined(parts)
    return KeyRows(fragments=known, points=points, addresses=addresses)


def _live(
    snapshot: Snapshot,
    source: IndexSource,
    segment: PointSegment,
    fragments: BitMap,
    wanted: KeyPoints,
) -> tuple[Positions, U64Array] | None:
    """Return the live rows of some fragments; None if a row is there under two keys."""
    points, ids = segment.rows_at(wanted)
    order = np.argsort(ids)
    points, ids = points[order], ids[order]
    if bool((ids[1:] == ids[:-1]).any()):
        return None
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    parts = []
    for number in _candidates(source.coverage, fragments, ids):
        fragment = by_id[FragmentId(number)]
        places, offsets = _within(snapshot, source.coverage, fragment, ids)
        if len(places) and fragment.deletion_file is not None:
            gone = known_deletions(snapshot.files, fragment).to_array()
            is_live = ~np.isin(offsets, np.frombuffer(gone, dtype=np.uint32))
            places, offsets = places[is_live], offsets[is_live]
        parts.append((points[places], row_addresses(fragment.id, offsets)))
    return _joined(parts)


def _candidates(coverage: Coverage, fragments: BitMap, ids: U64Array) -> Sequence[int]:
    """Return the fragments that can have one of the ids."""
    if coverage.stored is IdKind.STABLE_ID:
        return list(fragments)
    named = fragment_of(ids)
    return [int(i) for i in np.unique(named) if int(i) in fragments]


def _within(
    snapshot: Snapshot, coverage: Coverage, fragment: Fragment, ids: U64Array
) -> tuple[Positions, U64Array]:
    """Return which of ascending ids are rows of a fragment, and their offsets."""
    if coverage.stored is IdKind.STABLE_ID:
        return row_places(snapshot, fragment).located(ids)
    first, end = np.searchsorted(fragment_of(ids), [fragment.id, fragment.id + 1])
    offsets = offset_of(ids[first:end])
    rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
    if len(offsets) and int(offsets[-1]) >= rows:
        msg = f"it names row {int(offsets[-1])} of fragment {fragment.id}, which has {rows}"
        raise CorruptTableError(msg)
    return np.arange(first, end), offsets


def _joined(parts: Sequence[tuple[Positions, U64Array]]) -> tuple[Positions, U64Array]:
    if not parts:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    points, addresses = zip(*parts, strict=True)
    return np.concatenate(points), np.concatenate(addresses)
