"""Detection of index segments that lost entries."""

from __future__ import annotations

from lancelake.commit.snapshot import Snapshot
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.index.coverage import Coverage
from lancelake.index.kind import CountableSegment, IdKind, OpenSegment
from lancelake.scan.count import live_rows


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
