"""Lookup of row ids in the sequence of a fragment."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import numpy.typing as npt

from lancelake.format.rowids import segment as segments
from lancelake.format.rowids.segment import (
    Array,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    U64Array,
)
from lancelake.format.rowids.sequence import RowIdSequence

Positions = npt.NDArray[np.int64]


def find(sequence: RowIdSequence, ids: U64Array) -> tuple[Positions, U64Array]:
    """Return positions in `ids`, sorted and unique, and the row of each id found."""
    positions: list[Positions] = []
    rows: list[U64Array] = []
    before = 0
    for part in sequence.segments:
        here, offsets = _find(part, ids)
        positions.append(here)
        rows.append(offsets.astype(np.uint64) + np.uint64(before))
        before += segments.length(part)
    if not positions:
        return np.array([], np.int64), np.array([], np.uint64)
    return np.concatenate(positions), np.concatenate(rows)


def _find(part: Segment, ids: U64Array) -> tuple[Positions, Positions]:
    """Return positions in `ids` and the offset of each of these ids in the segment."""
    match part:
        case Range():
            low, high = np.searchsorted(ids, np.array([part.start, part.end], np.uint64))
            here = np.arange(low, high, dtype=np.int64)
            return here, (ids[low:high] - np.uint64(part.start)).astype(np.int64)
        case RangeWithHoles() | RangeWithBitmap():
            low, high = np.searchsorted(ids, np.array([part.start, part.end], np.uint64))
            if low == high:
                return np.array([], np.int64), np.array([], np.int64)
            here, offsets = _in_sorted(segments.values(part), ids[low:high])
            return here + low, offsets
        case SortedArray():
            return _in_sorted(segments.values(part), ids)
        case Array():
            values = segments.values(part)
            order = np.argsort(values, kind="stable")
            here, offsets = _in_sorted(values[order], ids)
            return here, order[offsets].astype(np.int64)
        case _:
            assert_never(part)


def _in_sorted(values: U64Array, ids: U64Array) -> tuple[Positions, Positions]:
    if not len(values):
        return np.array([], np.int64), np.array([], np.int64)
    at = np.minimum(np.searchsorted(values, ids), len(values) - 1)
    here = np.flatnonzero(values[at] == ids)
    return here, at[here]
