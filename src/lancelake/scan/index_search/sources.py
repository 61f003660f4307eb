"""Indices of a version that can be asked about a column: their segments, and what they cover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import RowMeta
from lancelake.errors import (
    CorruptTableError,
    DamagedIndexError,
    ObjectNotFoundError,
    UnsupportedError,
)
from lancelake.expr.condition import Column, Path
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.schema import follow
from lancelake.index import cache
from lancelake.index.coverage import Coverage
from lancelake.index.kind import IdKind, IndexKind, OpenSegment
from lancelake.index.registry import KINDS
from lancelake.index.stored_segment import StoredIndices
from lancelake.scan.count import physical_rows
from lancelake.scan.index_search.lost_entries import is_unreliable, lacks_rows
from lancelake.scan.per_snapshot import PerSnapshot

# What an open segment keeps in memory by itself, about.
_SEGMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """A segment of an index, and the fragments of the version that it answers for."""

    index: str
    kind: IndexKind
    segment: OpenSegment
    coverage: Coverage


class IndexSources:
    """The indices of a version, by column; segments are opened when their column is asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._stored = StoredIndices(snapshot)
        self._found = _found_in(snapshot)

    @property
    def fragments(self) -> FragmentList:
        """The fragments of the version."""
        return self._stored.fragments

    def of(self, column: Column) -> tuple[IndexSource, ...]:
        """Return the segments that index a column, those of exact kinds first."""
        found = self._found.get(column.path)
        if found is None:
            found = self._found[column.path] = tuple(self._sources(column))
        return found

    def _sources(self, column: Column) -> Iterator[IndexSource]:
        trail = follow(self._snapshot.manifest.schema.fields, column.path, exact=True)
        if len(trail) < len(column.path):
            return
        fields = (FieldId(trail[-1].id),)
        entries = [e for e in self._snapshot.indices if e.fields == fields and not e.is_system]
        usable = [(e, kind) for e in entries if (kind := self._kind(e, column.dtype)) is not None]
        for entry, kind in sorted(usable, key=lambda pair: KINDS.index(pair[1])):
            source = self._source(entry, kind, column)
            if source is not None and source.coverage.fragments:
                yield source

    def _kind(self, entry: IndexMetadata, dtype: pa.DataType) -> IndexKind | None:
        kind = self._stored.kind(entry, dtype)
        return kind if kind is not None and kind.accepts(dtype) else None

    def _source(self, entry: IndexMetadata, kind: IndexKind, column: Column) -> IndexSource | None:
        try:
            coverage = self._stored.version.coverage(entry, kind)
        except UnsupportedError:
            return None  # rows moved in a way that only newer releases know
        if coverage is not None and len(column.path) > 1:
            coverage = self._without_updates(coverage, entry)
        if coverage is None or not coverage.fragments:
            return None
        with named_failures(entry.name):
            segment = self._opened(entry, kind, column.dtype)
            coverage = coverage.trusted(segment)
            if lacks_rows(self._snapshot, segment, coverage):
                return None
            if is_unreliable(self._snapshot, entry, segment, coverage):
                return None
        return IndexSource(index=entry.name, kind=kind, segment=segment, coverage=coverage)

    def _without_updates(self, coverage: Coverage, entry: IndexMetadata) -> Coverage:
        """Leave out fragments with rows that were updated since a field of a struct was indexed.

        When a whole struct is updated, release 4.0.2 lets indices of its fields cover the new
        rows, of which they have the old values.
        """
        if coverage.stored is IdKind.ADDRESS:
            return coverage
        by_id = self.fragments.by_id()
        places = self._snapshot.files, self._snapshot.manifest_at
        updated = BitMap()
        for number in coverage.fragments:
            fragment = by_id[FragmentId(number)]
            rows = physical_rows(*places, fragment)
            meta = RowMeta(self._snapshot.files, fragment, rows, has_stable_row_ids=True)
            if meta.newest_update() > entry.dataset_version:
                updated.add(number)
        return replace(coverage, fragments=coverage.fragments - updated)

    def _opened(self, entry: IndexMetadata, kind: IndexKind, dtype: pa.DataType) -> OpenSegment:
        facts = self._stored.facts(entry, dtype)
        opened: object = cache.kept(
            facts.folder.place.uri, "segment", lambda: kind.open(facts), lambda _: _SEGMENT_BYTES
        )
        return cast(OpenSegment, opened)


_found_in: PerSnapshot[dict[Path, tuple[IndexSource, ...]]] = PerSnapshot(dict)
"""The segments that were found in a snapshot so far."""


@contextmanager
def named_failures(index: str, action: str | None = None) -> Iterator[None]:
    """Turn what is wrong with a file of an index into an error that names the index, too.

    `action` is what to do where the advice for filters does not apply.
    """
    try:
        yield
    except DamagedIndexError:
        raise
    except (CorruptTableError, ObjectNotFoundError) as error:
        problem = f"index {index!r} cannot be searched: {error.problem}"
        path = error.facts.get("path")
        raise DamagedIndexError(problem, action=action, index=index, path=path) from error
