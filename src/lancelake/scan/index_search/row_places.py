"""Positions of stable row ids in a fragment, prepared for many lookups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lancelake.commit.snapshot import Snapshot
from lancelake.data.row_meta import RowMeta
from lancelake.format.fragment import Fragment
from lancelake.format.rowids.segment import Range, U64Array
from lancelake.format.rowids.sequence import RowIdSequence
from lancelake.index import cache
from lancelake.scan.count import physical_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlaces:
    """The ids of a fragment's rows, deleted ones included, in ascending order."""

    first: int
    count: int
    ids: U64Array | None = None
    """None if all ids of the range are there, in the order of the rows."""
    rows: npt.NDArray[np.int64] | None = None
    """The row of each id; None if they are in the order of the rows."""

    @staticmethod
    def of(sequence: RowIdSequence) -> RowPlaces:
        """Prepare a sequence."""
        if len(sequence.segments) == 1 and isinstance(only := sequence.segments[0], Range):
            return RowPlaces(first=only.start, count=only.end - only.start)
        ids, rows = sequence.values(), None
        if not len(ids):
            return RowPlaces(first=0, count=0)
        if not bool(np.all(ids[1:] > ids[:-1])):
            rows = np.argsort(ids, kind="stable")
            ids = ids[rows]
        return RowPlaces(first=int(ids[0]), count=len(ids), ids=ids, rows=rows)

    @property
    def size_bytes(self) -> int:
        """About how much memory the ids take."""
        return sum(0 if part is None else part.nbytes for part in (self.ids, self.rows))

    def find(self, wanted: U64Array) -> U64Array:
        """Return the rows that have one of these ids, which ascend."""
        return self.located(wanted)[1]

    def located(self, wanted: U64Array) -> tuple[npt.NDArray[np.int64], U64Array]:
        """Return which of ascending ids rows have, and the row of each."""
        if not self.count:
            return np.zeros(0, dtype=np.int64), wanted[:0]
        last = self.first + self.count - 1 if self.ids is None else int(self.ids[-1])
        low = int(np.searchsorted(wanted, np.uint64(self.first), "left"))
        high = int(np.searchsorted(wanted, np.uint64(last), "right"))
        part = wanted[low:high]
        if self.ids is None:
            return np.arange(low, high), part - np.uint64(self.first)
        places = np.searchsorted(self.ids, part)
        found = np.flatnonzero(self.ids[places] == part) if len(part) else places
        places = places[found]
        rows = places if self.rows is None else self.rows[places]
        return found + low, rows.astype(np.uint64)


def row_places(snapshot: Snapshot, fragment: Fragment) -> RowPlaces:
    """Return the ids of a fragment, read once as long as they are kept."""
    count = physical_rows(snapshot.files, snapshot.manifest_at, fragment)

    def read() -> RowPlaces:
        meta = RowMeta(snapshot.files, fragment, count, has_stable_row_ids=True)
        return RowPlaces.of(meta.row_id_sequence())

    part = ("row ids", fragment.row_ids, count)
    return cache.kept(snapshot.files.root.uri, part, read, lambda found: found.size_bytes)
