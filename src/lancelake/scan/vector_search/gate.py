"""Rows of an index segment that a search may return: live ones that match its filter."""

from __future__ import annotations

from collections.abc import Callable

from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.format.rowids.segment import U64Array
from lancelake.index.kind import IdKind
from lancelake.index.row_ids import BoolArray, RowIds
from lancelake.scan.per_snapshot import PerSnapshot
from lancelake.scan.row_lookup import addresses_of
from lancelake.scan.stored_ids import ids_of_rows, live_ids
from lancelake.scan.vector_search.sources import VectorSource


class RowGate:
    """Tests the rows of partitions; what is found out about a partition is kept."""

    def __init__(self, source: VectorSource, allowed: RowIds) -> None:
        self._segment = source.segment
        self._coverage = source.coverage
        self._test: Callable[[U64Array], BoolArray] = allowed.tester()
        self._masks: dict[int, BoolArray | None] = {}

    def __call__(self, number: int, ids: U64Array) -> BoolArray | None:
        """Return which rows of a partition are wanted; None for all."""
        if number not in self._masks:
            mask = self._test(self._current(ids))
            self._masks[number] = None if mask.all() else mask
        return self._masks[number]

    def addresses(self, snapshot: Snapshot, ids: U64Array) -> U64Array:
        """Return the addresses of rows that are wanted."""
        if self._coverage.stored is IdKind.STABLE_ID:
            return addresses_of(snapshot, ids)
        return self._current(ids)

    def _current(self, ids: U64Array) -> U64Array:
        moves = self._coverage.moves
        return moves.row_map(ids) if moves else ids


_kept: PerSnapshot[dict[int, RowGate]] = PerSnapshot(dict)


def live_gate(snapshot: Snapshot, source: VectorSource) -> RowGate:
    """Return the gate for all live rows that a segment covers, kept with the snapshot."""
    known = _kept(snapshot)
    number = id(source.segment)
    found = known.get(number)
    if found is None:
        coverage = source.coverage
        allowed = live_ids(snapshot, coverage.fragments, coverage.stored)
        found = known[number] = RowGate(source, allowed)
    return found


def filtered_gate(snapshot: Snapshot, source: VectorSource, rows: dict[int, BitMap]) -> RowGate:
    """Return the gate for some rows, given by their offsets in fragments."""
    coverage = source.coverage
    covered = {number: part for number, part in rows.items() if number in coverage.fragments}
    return RowGate(source, ids_of_rows(snapshot, covered, coverage.stored))
