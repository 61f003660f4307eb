"""Rows for which a segment may hold an old value beside the current one.

In tables with stable row ids, release 4.0.2 keeps the old values of updated rows when it refreshes
an index of another kind than BTREE.
"""

from __future__ import annotations

import numpy as np
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import RowMeta
from lancelake.format import roaring
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.index import cache
from lancelake.index.coverage import Coverage
from lancelake.index.kind import CountableSegment, IdKind, OpenSegment
from lancelake.index.row_ids import EMPTY, RowIds
from lancelake.scan.count import physical_rows


def uncertain_rows(snapshot: Snapshot, segment: OpenSegment, coverage: Coverage) -> RowIds:
    """Return the addresses of covered rows that were updated since they were inserted."""
    if coverage.stored is IdKind.ADDRESS or isinstance(segment, CountableSegment):
        return EMPTY
    by_id = FragmentList.of(snapshot.manifest.fragments).by_id()
    found: dict[int, BitMap] = {}
    for number in coverage.fragments:
        rows = _updated(snapshot, by_id[FragmentId(number)])
        if rows:
            found[number] = rows
    return RowIds(found) if found else EMPTY


def _updated(snapshot: Snapshot, fragment: Fragment) -> BitMap:
    """Return the rows of a fragment that were updated, read once as long as they are kept."""
    created, changed = fragment.created_at_versions, fragment.last_updated_at_versions
    if created == changed:
        return BitMap()
    count = physical_rows(snapshot.files, snapshot.manifest_at, fragment)

    def read() -> BitMap:
        meta = RowMeta(snapshot.files, fragment, count, has_stable_row_ids=True)
        return roaring.of(np.flatnonzero(meta.is_updated()).astype(np.uint32))

    part = ("updated rows", created, changed, count)
    return cache.kept(snapshot.files.root.uri, part, read, lambda rows: len(rows.serialize()))
