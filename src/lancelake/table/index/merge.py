"""Segments of an index joined into one, together with rows that none of them covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.codec.index_file import SegmentFolder
from lancelake.data.codec.readers import temporary_folder
from lancelake.errors import CorruptTableError, LanceTableError
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.coverage import NamesFragments
from lancelake.index.kind import SegmentFacts
from lancelake.index.row_ids import EMPTY as NO_IDS
from lancelake.index.stored_segment import StoredSegment
from lancelake.scan.stored_ids import live_ids
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.table.index.build import IndexRun, new_place, row_counter, with_oldest_version
from lancelake.table.index.request import IndexTarget
from lancelake.table.index.rows import build_input

# What entries of a segment that contradict each other end in.
_DAMAGED = (IndexError, KeyError, OverflowError, TypeError, ValueError, pa.ArrowException)


def merged_segment(
    base: Snapshot,
    name: str,
    target: IndexTarget,
    segments: Sequence[StoredSegment],
    new_fragments: BitMap,
    run: IndexRun,
    *,
    model: SegmentFacts | None = None,
) -> IndexMetadata:
    """Write one segment of several and of the rows of new fragments, and return its entry.

    Rows that are deleted, and those of fragments that a segment no longer covers, are left out.
    Without segments, a kind that is trained encodes the rows by the model of another segment.
    """
    version = max((s.facts.index_version for s in segments), default=0)
    is_stable = base.manifest.has_stable_row_ids
    stored = target.kind.stored_ids(version, has_stable_row_ids=is_stable)
    counter = row_counter(base, f"index {target.path}", new_fragments, run.progress)
    rows = build_input(base, target, new_fragments, stored, on_rows=counter)
    place = new_place(base, run.choices.surroundings)
    kept = [mergeable_fragments(segment) for segment in segments]
    with ExitStack() as stack:
        sources = [
            (stack.enter_context(_current(s)), live_ids(base, f, s.coverage.stored))
            for s, f in zip(segments, kept, strict=True)
        ]
        if model is not None and not sources:
            sources = [(model, NO_IDS)]
        try:
            built = target.kind.merge(sources, rows, place.folder)
        except LanceTableError as error:
            raise _of_index(name, error) from error
        except _DAMAGED as error:
            if not segments:
                raise
            raise _of_index(name, CorruptTableError(str(error))) from error
    covered = BitMap.union(BitMap(new_fragments), *kept)
    entry = place.entry(base, name, target, built, covered)
    return with_oldest_version(entry, tuple(segment.entry for segment in segments))


def mergeable_fragments(segment: StoredSegment) -> BitMap:
    """Return the fragments that a segment covers with entries that need not be built again.

    Zones do not follow rows that moved.
    """
    opened = segment.open()
    covered = segment.coverage.fragments
    if not isinstance(opened, NamesFragments):
        return covered
    try:
        return covered & opened.fragments()
    except LanceTableError as error:
        raise _of_index(segment.entry.name, error) from error


@contextmanager
def _current(segment: StoredSegment) -> Iterator[SegmentFacts]:
    """Open a segment with current row addresses; it is rewritten first if rows have moved."""
    moves = segment.coverage.moves
    if not moves or isinstance(segment.open(), NamesFragments):
        yield segment.facts
        return
    with temporary_folder("lancelake-index-") as path:
        place = FileAt(root=Location.parse(path), path="segment")
        folder = SegmentFolder(place=place)
        segment.kind.remap(segment.facts, moves.row_map, folder)
        yield replace(segment.facts, folder=folder)


def _of_index(name: str, error: LanceTableError) -> LanceTableError:
    """Return an error about a file that names its index."""
    return type(error)(
        f"index {name!r} cannot be read: {error.problem}",
        table=error.table,
        version=error.version,
        action="Drop the index, or build it again.",
        index=name,
        **error.facts,
    )
