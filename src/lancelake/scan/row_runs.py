"""Chosen rows of a fragment, divided into those that are near each other and single ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lancelake.data.column_reader import RowOffsets

# Beginning to stream costs as much as streaming this many bytes.
_START_BYTES = 512 << 10
# Fewer rows are fetched one by one.
_LEAST_STREAMED = 64


@dataclass(frozen=True, slots=True)
class RowRun:
    """Ascending offsets of rows; near ones are cheaper to filter out of a stream than to fetch."""

    offsets: RowOffsets
    are_near: bool


def row_runs(offsets: RowOffsets, width: float, fetch_cost: float) -> Iterator[RowRun]:
    """Divide ascending row offsets into runs to stream and rows to fetch.

    Rows have a `width` in bytes; fetching one row costs as much as reading `fetch_cost` bytes.
    Single rows between two runs are fetched together.
    """
    if len(offsets) < _LEAST_STREAMED:
        if len(offsets):
            yield RowRun(offsets, are_near=False)
        return
    gap = max(fetch_cost, _START_BYTES) / width if width else np.inf
    ends = np.flatnonzero(np.diff(offsets) > gap) + 1
    bounds = np.concatenate([[0], ends, [len(offsets)]])
    starts, stops = bounds[:-1], bounds[1:]
    counts, spans = stops - starts, offsets[stops - 1] - offsets[starts]
    are_near = (counts >= _LEAST_STREAMED) & (counts * fetch_cost > spans * width)
    first = 0
    for place in np.flatnonzero(are_near).tolist():
        start, stop = int(starts[place]), int(stops[place])
        if first < start:
            yield RowRun(offsets[first:start], are_near=False)
        yield RowRun(offsets[start:stop], are_near=True)
        first = stop
    if first < len(offsets):
        yield RowRun(offsets[first:], are_near=False)
