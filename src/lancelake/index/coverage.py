"""Coverage: the fragments of a version that an index segment covers, and the ids it stores.

Index files are not rewritten when rows are deleted, updated or moved; their answers are masked.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from pyroaring import BitMap

from lancelake.format.index_meta import IndexMetadata
from lancelake.index.answer import Answer
from lancelake.index.fragment_reuse import NO_MOVES, RowMoves
from lancelake.index.kind import IdKind, IndexKind, OpenSegment
from lancelake.index.row_ids import RowIds
from lancelake.txn import fragment_reuse
from lancelake.txn.fragment_reuse import Move


@runtime_checkable
class NamesFragments(Protocol):
    """A segment whose files record the fragments of their entries."""

    def fragments(self) -> BitMap:
        """Return the fragments of the entries at the time when the segment was built."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Rows of a version that a segment covers: those of `fragments`."""

    fragments: BitMap
    stored: IdKind
    moves: RowMoves = NO_MOVES
    fragment_moves: tuple[Move, ...] = ()

    def trusted(self, segment: OpenSegment) -> Coverage:
        """Return the coverage without fragments for which the segment has no entries.

        Release 4.0.2 lets zone maps and bloom filters of tables with stable row ids cover
        fragments that were written after they were built.
        """
        if not isinstance(segment, NamesFragments):
            return self
        known = fragment_reuse.fragments_after(segment.fragments(), self.fragment_moves)
        return replace(self, fragments=self.fragments & known)

    def current(self, answer: Answer) -> Answer:
        """Return the answer of a segment, mapped to the rows of the covered fragments now.

        Addresses follow moved rows, and those in other fragments are dropped: their values may have
        changed. Stable row ids are not changed; only the fragments of the version record which of
        them are live, and their addresses.
        """
        return answer.mapped(self._current) if self.stored is IdKind.ADDRESS else answer

    def _current(self, ids: RowIds) -> RowIds:
        return self.moves.rows(ids).only(set(self.fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedVersion:
    """State of a version that determines the coverage of its indices.

    Moves that are recorded in a file must have been read into their entry.
    """

    indices: tuple[IndexMetadata, ...]
    fragments: BitMap
    has_stable_row_ids: bool

    def coverage(self, entry: IndexMetadata, kind: IndexKind) -> Coverage | None:
        """Return the coverage of a segment; None if its entry does not record it.

        Raise UnsupportedError if it stores addresses and the moves of rows cannot be read.
        """
        covered = entry.fragments()
        if covered is None or entry.is_system:
            return None
        version = entry.index_version or 0
        stored = kind.stored_ids(version, has_stable_row_ids=self.has_stable_row_ids)
        fragment_moves = tuple(fragment_reuse.fragment_moves(self.indices))
        now = fragment_reuse.fragments_after(covered, fragment_moves)
        return Coverage(
            fragments=now & self.fragments,
            stored=stored,
            moves=RowMoves.of(self.indices) if stored is IdKind.ADDRESS else NO_MOVES,
            fragment_moves=fragment_moves,
        )


def common(coverages: Collection[Coverage]) -> BitMap:
    """Return the fragments for which conditions on several indices can be combined."""
    found = [coverage.fragments for coverage in coverages]
    return BitMap.intersection(*found) if found else BitMap()
