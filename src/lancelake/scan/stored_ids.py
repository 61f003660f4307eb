"""Ids that an index stores for live rows of fragments."""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import known_deletions
from lancelake.data.row_meta import RowMeta
from lancelake.format import row_address
from lancelake.format.fragment import Fragment
from lancelake.format.fragment_list import FragmentList
from lancelake.format.ids import FragmentId
from lancelake.index.kind import IdKind
from lancelake.index.row_ids import RowIds, union
from lancelake.scan.count import physical_rows


def live_offsets(base: Snapshot, fragment: Fragment) -> BitMap:
    """Return the offsets of the rows of a fragment that are not deleted."""
    live = BitMap()
    live.add_range(0, physical_rows(base.files, base.manifest_at, fragment))
    return live - known_deletions(base.files, fragment) if fragment.deletion_file else live


def live_ids(base: Snapshot, fragments: BitMap, stored: IdKind) -> RowIds:
    """Return what an index stores for the live rows of fragments."""
    by_id = FragmentList.of(base.manifest.fragments).by_id()
    numbers = [number for number in fragments if FragmentId(number) in by_id]
    rows = {number: live_offsets(base, by_id[FragmentId(number)]) for number in numbers}
    return ids_of_rows(base, rows, stored)


def ids_of_rows(base: Snapshot, rows: Mapping[int, BitMap], stored: IdKind) -> RowIds:
    """Return what an index stores for rows, given by the offsets in their fragments."""
    if stored is IdKind.ADDRESS:
        return RowIds.within(rows)
    by_id = FragmentList.of(base.manifest.fragments).by_id()
    return union(_stable_ids(base, by_id[FragmentId(i)], part) for i, part in rows.items())


def _stable_ids(base: Snapshot, fragment: Fragment, offsets: BitMap) -> RowIds:
    rows = physical_rows(base.files, base.manifest_at, fragment)
    meta = RowMeta(base.files, fragment, rows, has_stable_row_ids=True)
    ids = meta.row_id_sequence().values()
    if len(offsets) < rows:
        ids = ids[row_address.ascending({0: offsets})]
    return RowIds.of(ids)
