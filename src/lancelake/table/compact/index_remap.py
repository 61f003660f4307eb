"""Index segments written again with the addresses that a compaction gives to their rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format import layout
from lancelake.format.operations.rewrite import RewriteGroup, RewrittenIndex
from lancelake.index.fragment_reuse import MovedGroup, RowMoves
from lancelake.index.kind import DROPPED, IdKind, RowMap
from lancelake.index.row_ids import U64Array
from lancelake.index.stored_segment import StoredIndices, StoredSegment
from lancelake.storage.table_files import FileAt
from lancelake.table.compact.index_moves import group_moves
from lancelake.table.publish import Surroundings
from lancelake.txn import fragment_reuse

_SHIFT = np.uint64(32)


def remapped_indices(
    base: Snapshot, groups: Sequence[RewriteGroup], surroundings: Surroundings
) -> tuple[RewrittenIndex, ...]:
    """Write every segment that covers fragments of groups and finds rows by address.

    The rows of each group must have kept their order. Kinds that cannot follow rows are left out:
    they do not cover the new fragments until they are brought up to date.
    """
    old = BitMap(f.id for group in groups for f in group.old_fragments)
    segments = [s for s in _of_addresses(base) if s.coverage.fragments & old]
    if not segments:
        return ()
    moved = tuple(map(MovedGroup.of, group_moves(base, groups)))
    moves = RowMoves(compactions=(moved,))
    found = (_remapped(base, segment, groups, moves, surroundings) for segment in segments)
    return tuple(entry for entry in found if entry is not None)


def _of_addresses(base: Snapshot) -> list[StoredSegment]:
    """Return the segments that store addresses, of which a commit knows the coverage."""
    stored = StoredIndices(base)
    # A commit does not read moves that are recorded in a file.
    hides_moves = fragment_reuse.has_hidden_moves(base.indices)
    found = (stored.segment(entry) for entry in base.indices)
    return [
        segment
        for segment in found
        if segment is not None
        and segment.coverage.stored is IdKind.ADDRESS
        and not (hides_moves and segment.coverage.fragments != _recorded(base, segment))
    ]


def _recorded(base: Snapshot, segment: StoredSegment) -> BitMap:
    existing = BitMap(fragment.id for fragment in base.manifest.fragments)
    return (segment.entry.fragments() or BitMap()) & existing


def _remapped(
    base: Snapshot,
    segment: StoredSegment,
    groups: Sequence[RewriteGroup],
    moves: RowMoves,
    surroundings: Surroundings,
) -> RewrittenIndex | None:
    unique = surroundings.ids.uuid4()
    place = FileAt(root=base.location, path=layout.index_dir(unique))
    row_map = _row_map(segment, groups, moves)
    built = segment.kind.remap(segment.facts, row_map, SegmentFolder(place=place))
    if built is None:
        return None
    return RewrittenIndex(
        old_id=segment.entry.uuid,
        new_id=unique,
        new_details=built.details,
        new_index_version=built.index_version,
        new_index_files=built.files,
    )


def _row_map(segment: StoredSegment, groups: Sequence[RewriteGroup], moves: RowMoves) -> RowMap:
    """Return where rows that a segment covers are found after all moves."""
    covered = segment.coverage.fragments
    after = BitMap(covered)
    for group in groups:
        old = BitMap(f.id for f in group.old_fragments)
        if old & covered:
            after = (after - old) | BitMap(f.id for f in group.new_fragments)
    kept = np.array(list(after), dtype=np.uint64)

    def row_map(ids: U64Array) -> U64Array:
        now = moves.row_map(segment.coverage.moves.row_map(ids))
        is_kept = np.isin(now >> _SHIFT, kept)
        return np.where(is_kept, now, np.uint64(DROPPED))

    return row_map
