"""An index segment as stored: opened, or damaged.

Index files are not rewritten when rows are deleted, updated or moved; their answers are masked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot, open_line
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.errors import CorruptTableError, LanceTableError
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.frozen import computed_once
from lancelake.format.ids import BaseId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.index import cache
from lancelake.index.kind import (
    BuiltSegment,
    IdKind,
    IndexKind,
    OpenSegment,
    RowMap,
    SegmentFacts,
    indexed_type,
)
from lancelake.index.kinds import is_untrained, kind_of, kind_of_files
from lancelake.index.moved_rows import NO_MOVES, RowMoves, with_inline_moves
from lancelake.index.row_sets import Answer, RowIds
from lancelake.index.scalar.bitmap import BITMAP
from lancelake.index.scalar.btree.build import has_early_names
from lancelake.index.scalar.btree.kind import BTREE
from lancelake.index.vector.kind import VECTOR
from lancelake.txn.fragments import Move, fragments_after, list_moves

_BYTES_PER_FILE = 256

_Place: TypeAlias = tuple[str, BaseId | None]
"""Path and base of a data file."""

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
    stored: IdKind
    moves: RowMoves = NO_MOVES
    fragment_moves: tuple[Move, ...] = ()

    def trusted(self, segment: OpenSegment) -> Coverage:
        """Return the coverage without fragments for which the segment has no entries.

        Release 4.0.2 lets zone maps and bloom filters of tables with stable row ids cover
        fragments that were written after they were built.
        """
        built = segment.fragments()
        if built is None:
            return self
        now = fragments_after(built, self.fragment_moves)
        return replace(self, fragments=self.fragments & now)

    def current(self, answer: Answer) -> Answer:
        """Return the answer of a segment, mapped to the rows of the covered fragments now.

        Addresses follow moved rows, and those in other fragments are dropped: their values may have
        changed. Stable row ids are not changed; only the fragments of the version record which of
        them are live, and their addresses.
        """
        return answer.mapped(self._to_current) if self.stored is IdKind.ADDRESS else answer

    def _to_current(self, ids: RowIds) -> RowIds:
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
        fragment_moves = tuple(list_moves(self.indices))
        now = fragments_after(covered, fragment_moves)
        return Coverage(
            fragments=now & self.fragments,
            stored=stored,
            moves=RowMoves.of(self.indices) if stored is IdKind.ADDRESS else NO_MOVES,
            fragment_moves=fragment_moves,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A segment of a kind that is known, which says what it covers."""

    entry: IndexMetadata
    kind: IndexKind
    facts: SegmentFacts
    coverage: Coverage

    def open(self) -> OpenSegment:
        """Open the segment; what a search needs is read when it is searched."""
        return self.kind.open(self.facts)

    def remap(self, row_map: RowMap, folder: SegmentFolder) -> BuiltSegment | None:
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
        dtype = indexed_type(field)
        kind = self.kind(entry, dtype)
        coverage = None if kind is None else self.version.coverage(entry, kind)
        if kind is None or coverage is None:
            return None
        return StoredSegment(
            entry=entry, kind=kind, facts=self.facts(entry, dtype), coverage=coverage
        )

    def kind(self, entry: IndexMetadata, dtype: pa.DataType) -> IndexKind | None:
        """Return the kind of an entry if it can be searched: its version and layout are known."""
        kind = self.recorded_kind(entry, dtype)
        if kind is None or not _is_reliable(self._snapshot, entry, kind):
            return None
        # Releases that record the files of a segment write no early layout.
        if kind.has_early_layouts and not entry.files:
            folder = SegmentFolder(place=cache.segment_place(self._snapshot, entry))
            is_read = cache.kept(
                cache.of(folder.place), "is read", partial(kind.reads, folder), lambda _: 0
            )
            return kind if is_read else None
        return kind

    def recorded_kind(self, entry: IndexMetadata, dtype: pa.DataType) -> IndexKind | None:
        """Return the kind of an entry if its version is known; some releases do not record it."""
        if entry.details is not None:
            kind = kind_of(entry)
            return kind if kind is not None and kind.accepts(dtype) else None
        names = [file.path for file in entry.files]
        if not names:
            folder = cache.segment_place(self._snapshot, entry)
            names = list(folder.store.list_names(folder.path))
        kind = kind_of_files(names, dtype)
        is_read = kind is not None and (entry.index_version or 0) <= kind.max_version
        return kind if is_read else None

    def facts(self, entry: IndexMetadata, dtype: pa.DataType) -> SegmentFacts:
        """Return what opens the files of an entry."""
        return SegmentFacts(
            folder=SegmentFolder(place=cache.segment_place(self._snapshot, entry)),
            dtype=dtype,
            details=entry.details,
            index_version=entry.index_version or 0,
            # Open segments are cached, and must not keep the snapshot in memory.
            fragment_rows=partial(_rows, self.fragments),
            is_trained=not is_untrained(entry),
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


def _is_reliable(snapshot: Snapshot, entry: IndexMetadata, kind: IndexKind) -> bool:
    """Whether searches of an entry find the rows of a scan.

    Releases before 0.29 recorded no version of a segment. Some of their kinds have other content:
    the tokens of NGRAM, the files of text indices, and LABEL_LIST, which lacks the lists that are
    null. Their BTREE and BITMAP are right as they were built, but not after these changes:

    - compaction moved the rows of a BTREE to other pages, and lost the nulls of a BITMAP;
    - a refresh moved rows of a BTREE with nulls, and took over what was wrong before;
    - a merge of some columns, and a replacement of data files, changed values in place, and the
      segment still covered them. In the newest manifest the latter leaves no trace.

    Therefore the version that a segment was built from must still exist. If no index had its
    name there, it was not refreshed; if the fragments that it covers had the same files of its
    column there, it was not written again by a compaction, and its values did not change.

    Releases 0.29 to 0.32 did the latter, too. Of these, only BTREE are distinguished from those
    of later releases, by the names of columns.
    """
    if kind is VECTOR or not _is_early(snapshot, entry, kind):
        return True
    if kind not in (BTREE, BITMAP) or entry.base_id is not None:
        return False
    before = cache.kept(
        cache.of(cache.segment_place(snapshot, entry)),
        "files when built",
        partial(_files_when_built, snapshot, entry),
        lambda files: _BYTES_PER_FILE * len(files),
    )
    covered = entry.fragments() or ()
    now = {each.id: each for each in snapshot.manifest.fragments if each.id in covered}
    return all(
        number in before and before[number] == _file_of(fragment, entry)
        for number, fragment in now.items()
    )


def _is_early(snapshot: Snapshot, entry: IndexMetadata, kind: IndexKind) -> bool:
    if entry.index_version is None:
        return True
    # Releases that record the files of a segment have later names.
    if kind is not BTREE or entry.files:
        return False
    folder = SegmentFolder(place=cache.segment_place(snapshot, entry))
    return cache.kept(
        cache.of(folder.place), "is early", partial(has_early_names, folder), lambda _: 0
    )


def _files_when_built(snapshot: Snapshot, entry: IndexMetadata) -> Mapping[int, _Place]:
    """Return the file of the indexed column of each fragment that a new index was built from.

    None are known for an index that was there before, or when that version was removed.
    """
    line = open_line(snapshot.location)
    name = line.handler.find(entry.dataset_version)
    if name is None:
        return {}
    try:
        source = line.load(name)
        if any(each.name == entry.name for each in source.indices):
            return {}
        files = ((each.id, _file_of(each, entry)) for each in source.manifest.fragments)
        return {number: file for number, file in files if file is not None}
    except CorruptTableError:
        return {}


def _file_of(fragment: Fragment, entry: IndexMetadata) -> _Place | None:
    """Return the path and base of the file that has the indexed column."""
    files = (file for file in fragment.files if entry.fields[0] in file.fields)
    return next(((file.path, file.base_id) for file in files), None)
