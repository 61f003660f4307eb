"""Fetching of single rows of a fragment: its cost, the rows that it serves, and its limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lancelake.data.column_reader import RowOffsets
from lancelake.format.fragment import Fragment

# Limits of what one fetch reads and returns.
_READ_BYTES = 128 << 20
_RESULT_BYTES = 32 << 20
# Small values are stored in chunks; a whole chunk is read for each value.
_CHUNK_BYTES = 8 << 10
_SMALL_VALUE_BYTES = 256
# Fetching a row, or one value of many columns, costs as much as streaming this many bytes.
_ROW_COST_BYTES = 8000
_VALUE_COST_BYTES = 400
# Files since 2.1 are decoded by chunks, whether rows are fetched or streamed: a fetch saves the
# rest of a stream, which takes about as long as fetching one of so many rows.
_ROWS_PER_FETCH = 64
# Beginning to stream costs as much as streaming this many bytes.
_START_BYTES = 512 << 10
# Fewer rows are fetched one by one.
_LEAST_STREAMED = 64


def fetch_cost_bytes(values: Sequence[float], fragment: Fragment) -> float:
    """Return how many bytes could be streamed in the time it takes to fetch one row.

    The values are the bytes per row of each column.
    """
    cost = max(_ROW_COST_BYTES, _VALUE_COST_BYTES * len(values))
    width = sum(values)
    if width and all(file.version.leaves_only for file in fragment.files):
        return min(cost, _ROWS_PER_FETCH * width)
    return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of one fetch: rows that it returns, and either of two that bound what it reads."""

    rows: int
    scattered_rows: int
    """Rows whose chunks may be read wherever they are."""

    span_rows: int
    """Consecutive rows that may be read as a whole."""

    @staticmethod
    def of(values: Sequence[float]) -> FetchLimits:
        """Compute the limits from the bytes per row of each column."""
        width = max(sum(values), 1.0)
        read = sum(v if v >= _SMALL_VALUE_BYTES else _CHUNK_BYTES for v in values)
        return FetchLimits(
            rows=max(1, int(_RESULT_BYTES / width)),
            scattered_rows=max(1, int(_READ_BYTES / max(read, 1.0))),
            span_rows=max(1, int(_READ_BYTES / width)),
        )

    def parts(self, offsets: RowOffsets) -> Iterator[RowOffsets]:
        """Split sorted offsets into one part for each fetch."""
        first = 0
        while first < len(offsets):
            end_of_span = offsets[first] + np.uint64(self.span_rows)
            near = int(np.searchsorted(offsets, end_of_span))
            last = min(max(near, first + self.scattered_rows), first + self.rows)
            yield offsets[first:last]
            first = last


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
