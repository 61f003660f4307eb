"""Row ids and row versions that rows keep when they move to other fragments."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lancelake.errors import CorruptTableError
from lancelake.format.fragment import Fragment
from lancelake.format.rowids.lineage import VersionSequence
from lancelake.format.rowids.segment import Range, U64Array
from lancelake.format.rowids.sequence import RowIdSequence

# Approximate size in a manifest of a range, and of a single row id outside of ranges.
_RANGE_BYTES = 12
_ID_BYTES = 4


@dataclass(slots=True)
class CarriedRows:
    """Collects the lineage of rows in write order, and assigns it to new fragments.

    Each lineage batch has three columns: row id, created-at version, last-updated-at version.
    """

    _waiting: deque[pa.RecordBatch] = field(default_factory=deque)

    def add(self, lineage: pa.RecordBatch) -> None:
        """Add the lineage of rows that are about to be written."""
        self._waiting.append(lineage)

    def given_to(self, fragment: Fragment) -> Fragment:
        """Return the next fragment with the lineage of its rows."""
        rows = fragment.physical_rows or 0
        if not 0 < rows <= sum(batch.num_rows for batch in self._waiting):
            problem = f"{rows} rows were written whose row ids and versions are unknown"
            raise CorruptTableError(problem, fragment=fragment.id)
        ids, created, updated = self._next(rows)
        return replace(
            fragment,
            row_ids=row_ids(ids).encode(),
            created_at_versions=versions(created).encode(),
            last_updated_at_versions=versions(updated).encode(),
        )

    def _next(self, rows: int) -> list[U64Array]:
        parts: list[pa.RecordBatch] = []
        while rows:
            batch = self._waiting.popleft()
            parts.append(batch.slice(0, rows))
            if batch.num_rows > rows:
                self._waiting.appendleft(batch.slice(rows))
            rows -= parts[-1].num_rows
        count = parts[0].num_columns if parts else 0
        return [np.concatenate([part.column(i).to_numpy() for part in parts]) for i in range(count)]


def row_ids(ids: U64Array) -> RowIdSequence:
    """Encode ids as ranges if they form few ranges, else as one segment."""
    ends = np.flatnonzero(np.diff(ids) != 1) + 1
    if (len(ends) + 1) * _RANGE_BYTES > len(ids) * _ID_BYTES:
        return RowIdSequence.of(ids)
    starts = [0, *ends.tolist()]
    stops = [*ends.tolist(), len(ids)]
    ranges = tuple(
        Range(start=int(ids[start]), end=int(ids[stop - 1]) + 1)
        for start, stop in zip(starts, stops, strict=True)
    )
    whole = RowIdSequence.of(ids)
    return min(RowIdSequence(ranges), whole, key=_size) if _ascends(ids) else RowIdSequence(ranges)


def versions(values: U64Array) -> VersionSequence:
    """Encode versions as runs."""
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    counts = np.diff(np.append(starts, len(values)))
    pairs = zip(counts.tolist(), values[starts].tolist(), strict=True)
    return VersionSequence(tuple(pairs))


def _ascends(ids: U64Array) -> bool:
    return bool(np.all(ids[1:] > ids[:-1]))


def _size(sequence: RowIdSequence) -> int:
    return len(sequence.encode())
