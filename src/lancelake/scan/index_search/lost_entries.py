"""Detection of index segments that lost entries, or whose entries cannot be found."""

from __future__ import annotations

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import known_deletions
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.index.coverage import Coverage
from lancelake.index.kind import (
    CountableSegment,
    IdKind,
    OpenSegment,
    PagedSegment,
    RecountedSegment,
)
from lancelake.index.row_ids import RowIds
from lancelake.scan.count import live_rows, physical_rows


def lacks_rows(snapshot: Snapshot, segment: OpenSegment, coverage: Coverage) -> bool:
    """Whether a segment has fewer entries than the fragments that it should cover have rows.

    In tables with stable row ids, release 4.0.2 loses entries when it refreshes an index after
    rows were updated and compacted.
    """
    if coverage.stored is IdKind.ADDRESS or not isinstance(segment, CountableSegment):
        return False
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    covered = (by_id[FragmentId(number)] for number in coverage.fragments)
    rows = (live_rows(snapshot.files, snapshot.manifest_at, fragment) for fragment in covered)
    return segment.num_entries() < sum(rows)


def is_unreliable(
    snapshot: Snapshot, entry: IndexMetadata, segment: OpenSegment, coverage: Coverage
) -> bool:
    """Whether searches of a segment of an early release would miss rows.

    Releases that record the files of a segment do not leave such segments.
    """
    if entry.files:
        return False
    if isinstance(segment, PagedSegment) and segment.has_stale_bounds():
        return True
    if not isinstance(segment, RecountedSegment) or coverage.stored is not IdKind.ADDRESS:
        return False
    found = segment.early_rows()
    return found is not None and not _has_live_rows(snapshot, found, coverage)


def _has_live_rows(snapshot: Snapshot, found: RowIds, coverage: Coverage) -> bool:
    """Whether a set has all rows of the covered fragments that are not deleted.

    Releases before 0.30 lost the rows of nulls when they compacted a table with a BITMAP.
    """
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    for number in coverage.fragments:
        fragment = by_id[FragmentId(number)]
        rows = physical_rows(snapshot.files, snapshot.manifest_at, fragment)
        live = BitMap(range(rows)) - known_deletions(snapshot.files, fragment)
        if live - found.parts.get(number, BitMap()):
            return False
    return True
