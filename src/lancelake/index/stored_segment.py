"""An index segment as stored: opened, or damaged.

Index files are not rewritten when rows are deleted, updated or moved; their answers are masked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError, LanceTableError
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import computed_once
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.index import cache, kinds, row_sets
from lancelake.index import kind as index_kind
from lancelake.index.moved_rows import NO_MOVES, RowMoves, with_inline_moves
from lancelake.index.vector.kind import VECTOR
from lancelake.txn import fragment_reuse
from lancelake.txn.fragment_reuse import Move

CONTRADICTIONS = (
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
)
"""What entries that contradict each other end in."""


@contextmanager
def reading_index(name: str) -> Iterator[None]:
    """Raise errors of the block that name an index; contradictory entries are damage."""
    try:
        yield
    except LanceTableError as error:
        raise _of_index(name, error) from error
    except CONTRADICTIONS as error:
        raise _of_index(name, CorruptTableError(str(error))) from error


def _of_index(name: str, error: LanceTableError) -> LanceTableError:
    return type(error)(
        f"index {name!r} cannot be read: {error.problem}",
        table=error.table,
        version=error.version,
        action="Drop the index, or build it again.",
        index=name,
        **error.facts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Rows of a version that a segment covers: those of `fragments`."""

    fragments: BitMap
    stored: index_kind.IdKind
    moves: RowMoves = NO_MOVES
    fragment_moves: tuple[Move, ...] = ()

    def trusted(self, segment: index_kind.OpenSegment) -> Coverage:
        """Return the coverage without fragments for which the segment has no entries.

        Release 4.0.2 lets zone maps and bloom filters of tables with stable row ids cover
        fragments that were written after they were built.
        """
        built = segment.fragments()
        if built is None:
            return self
        now = fragment_reuse.fragments_after(built, self.fragment_moves)
        return replace(self, fragments=self.fragments & now)

    def current(self, answer: row_sets.Answer) -> row_sets.Answer:
        """Return the answer of a segment, mapped to the rows of the covered fragments now.

        Addresses follow moved rows, and those in other fragments are dropped: their values may have
        changed. Stable row ids are not changed; only the fragments of the version record which of
        them are live, and their addresses.
        """
        return (
            answer.mapped(self._to_current) if self.stored is index_kind.IdKind.ADDRESS else answer
        )

    def _to_current(self, ids: row_sets.RowIds) -> row_sets.RowIds:
        return self.moves.rows(ids).only(set(self.fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedVersion:
    """State of a version that determines the coverage of its indices.

    Moves that are recorded in a file must have been read into their entry.
    """

    indices: tuple[IndexMetadata, ...]
    fragments: BitMap
    has_stable_row_ids: bool

    def coverage(self, entry: IndexMetadata, kind: index_kind.IndexKind) -> Coverage | None:
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
            moves=RowMoves.of(self.indices) if stored is index_kind.IdKind.ADDRESS else NO_MOVES,
            fragment_moves=fragment_moves,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A segment of a kind that is known, which says what it covers."""

    entry: IndexMetadata
    kind: index_kind.IndexKind
    facts: index_kind.SegmentFacts
    coverage: Coverage

    def open(self) -> index_kind.OpenSegment:
        """Open the segment; what a search needs is read when it is searched."""
        return self.kind.open(self.facts)

    def remap(
        self, row_map: index_kind.RowMap, folder: SegmentFolder
    ) -> index_kind.BuiltSegment | None:
        """Write the segment again with other addresses; None if its kind cannot follow rows."""
        with reading_index(self.entry.name):
            return self.kind.remap(self.facts, row_map, folder)


class StoredIndices:
    """The segments of a version that can be used."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def segments(self, name: str) -> tuple[StoredSegment, ...]:
        """Return the segments of an index that can be used."""
        entries = (entry for entry in self._snapshot.indices if entry.name == name)
        segments = (self.segment(entry) for entry in entries)
        return tuple(segment for segment in segments if segment is not None)

    def segment(self, entry: IndexMetadata) -> StoredSegment | None:
        """Return a segment; None for one whose kind, version or coverage is not known."""
        field = (
            self._snapshot.manifest.schema.by_id().get(entry.fields[0]) if entry.fields else None
        )
        if field is None or entry.is_system:
            return None
        dtype = index_kind.indexed_type(field)
        kind = self.kind(entry, dtype)
        coverage = None if kind is None else self.version.coverage(entry, kind)
        if kind is None or coverage is None:
            return None
        return StoredSegment(
            entry=entry, kind=kind, facts=self.facts(entry, dtype), coverage=coverage
        )

    def kind(self, entry: IndexMetadata, dtype: pa.DataType) -> index_kind.IndexKind | None:
        """Return the kind of an entry if it can be searched: its version and layout are known.

        Releases before 0.29 recorded no version of a segment. Their compactions, refreshes and
        changes of values in place left segments other than those of vectors without rows.
        """
        kind = self.recorded_kind(entry, dtype)
        if kind is None or (entry.index_version is None and kind is not VECTOR):
            return None
        # Releases that record the files of a segment write no early layout.
        if kind.has_early_layouts and not entry.files:
            folder = SegmentFolder(place=cache.segment_place(self._snapshot, entry))
            is_read = cache.kept(
                cache.of(folder.place), "is read", partial(kind.reads, folder), lambda _: 0
            )
            return kind if is_read else None
        return kind

    def recorded_kind(
        self, entry: IndexMetadata, dtype: pa.DataType
    ) -> index_kind.IndexKind | None:
        """Return the kind of an entry if its version is known; some releases do not record it."""
        if entry.details is not None:
            kind = kinds.kind_of(entry)
            return kind if kind is not None and kind.accepts(dtype) else None
        names = [file.path for file in entry.files]
        if not names:
            folder = cache.segment_place(self._snapshot, entry)
            names = list(folder.store.list_names(folder.path))
        kind = kinds.kind_of_files(names, dtype)
        is_read = kind is not None and (entry.index_version or 0) <= kind.max_version
        return kind if is_read else None

    def facts(self, entry: IndexMetadata, dtype: pa.DataType) -> index_kind.SegmentFacts:
        """Return what opens the files of an entry."""
        return index_kind.SegmentFacts(
            folder=SegmentFolder(place=cache.segment_place(self._snapshot, entry)),
            dtype=dtype,
            details=entry.details,
            index_version=entry.index_version or 0,
            # Open segments are cached, and must not keep the snapshot in memory.
            fragment_rows=partial(_rows, self.fragments),
            is_trained=not kinds.is_untrained(entry),
        )

    @computed_once
    def version(self) -> IndexedVersion:
        """The index entries, with all recorded moves of rows."""
        manifest = self._snapshot.manifest
        return IndexedVersion(
            indices=with_inline_moves(self._snapshot),
            fragments=BitMap(self.fragments.ids),
            has_stable_row_ids=manifest.has_stable_row_ids,
        )

    @computed_once
    def fragments(self) -> FragmentList:
        """The fragments of the version."""
        return FragmentList.of(self._snapshot.manifest.fragments)


def _rows(fragments: FragmentList, fragment: int) -> int | None:
    present = fragments.by_id().get(FragmentId(fragment))
    return None if present is None else present.physical_rows
