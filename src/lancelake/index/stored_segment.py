"""Index segments as a version of a table names them: their kind, column, files and coverage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.format.arrow_schema import public_field
from lancelake.format.computed_once import computed_once
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.schema import Field
from lancelake.index import cache
from lancelake.index.coverage import Coverage, IndexedVersion
from lancelake.index.kind import ChangedKind, IndexKind, OpenSegment, SegmentFacts
from lancelake.index.recorded_moves import with_inline_moves
from lancelake.index.registry import is_reliable, kind_of, kind_of_files
from lancelake.index.segment_place import segment_place
from lancelake.storage.open import open_store


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


class StoredIndices:
    """The segments of a version that can be used."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def segments(self, name: str) -> tuple[StoredSegment, ...]:
        """Return the segments of an index that can be used."""
        entries = (entry for entry in self._snapshot.indices if entry.name == name)
        found = (self.segment(entry) for entry in entries)
        return tuple(segment for segment in found if segment is not None)

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
        if kind is None or not is_reliable(entry, kind):
            return None
        # Releases that record the files of a segment write no early layout.
        if isinstance(kind, ChangedKind) and not entry.files:
            folder = SegmentFolder(place=segment_place(self._snapshot, entry))
            is_read = cache.kept(folder.uri, "is read", partial(kind.reads, folder), lambda _: 0)
            return kind if is_read else None
        return kind

    def recorded_kind(self, entry: IndexMetadata, dtype: pa.DataType) -> IndexKind | None:
        """Return the kind of an entry if its version is known; some releases do not record it."""
        if entry.details is not None:
            found = kind_of(entry)
            return found if found is not None and found.accepts(dtype) else None
        names = [file.path for file in entry.files]
        if not names:
            folder = segment_place(self._snapshot, entry)
            names = list(open_store(folder.root).list_names(folder.path))
        kind = kind_of_files(names, dtype)
        is_known = kind is not None and (entry.index_version or 0) <= kind.max_version
        return kind if is_known else None

    def facts(self, entry: IndexMetadata, dtype: pa.DataType) -> SegmentFacts:
        """Return what opens the files of an entry."""
        return SegmentFacts(
            folder=SegmentFolder(place=segment_place(self._snapshot, entry)),
            dtype=dtype,
            details=entry.details,
            index_version=entry.index_version or 0,
            # Open segments are cached, and must not keep the snapshot in memory.
            fragment_rows=partial(_rows, self.fragments),
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
    found = fragments.by_id().get(FragmentId(fragment))
    return None if found is None else found.physical_rows


def indexed_type(field: Field) -> pa.DataType:
    """Return the Arrow type of the values that an index of a column stores."""
    dtype = public_field(field).type
    is_extension = isinstance(dtype, pa.BaseExtensionType) and not field.is_json
    return dtype.storage_type if is_extension else dtype
