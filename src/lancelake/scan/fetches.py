"""Fetching of single rows of a fragment in parts of bounded size."""

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
