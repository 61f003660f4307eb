"""Row offsets between pages that the codec cannot decode in one batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.arrays.rebatch import rebatched
from lancelake.data.codec.container import Container
from lancelake.data.codec.page_layout import levels_above_lists
from lancelake.data.column_reader import ColumnReader, RowOffsets
from lancelake.proto import file2_pb2


def page_seams(container: Container, columns: Iterable[int]) -> tuple[int, ...]:
    """Find the seams of some columns, in the order of their offsets."""
    return tuple(sorted({seam for n in columns for seam in _seams(container.column(n))}))


def _seams(column: file2_pb2.ColumnMetadata) -> Iterator[int]:
    rows = 0
    before: tuple[bool, ...] | None = None
    for page in column.pages:
        levels = levels_above_lists(page)
        if before is not None and levels != before:
            yield rows
        before = levels
        rows += page.length


@dataclass(frozen=True, slots=True, kw_only=True)
class SeamedColumns:
    """Columns of one file that are read in parts, between the seams of their pages."""

    columns: ColumnReader
    seams: tuple[int, ...]

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.columns.schema

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return self.columns.num_rows

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        parts = (
            batch
            for part in self._parts(start, stop)
            for batch in self.columns.batches(
                start=part.start, stop=part.stop, batch_rows=batch_rows
            )
        )
        return rebatched(parts, batch_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        parts = np.split(offsets, np.searchsorted(offsets, self.seams))
        taken = [self.columns.take(part) for part in parts if len(part)]
        return pa.concat_batches(taken) if taken else self.columns.take(offsets)

    def _parts(self, start: int, stop: int) -> Iterator[range]:
        here = self.seams[bisect_right(self.seams, start) :]
        for seam in here:
            if seam >= stop:
                break
            yield range(start, seam)
            start = seam
        yield range(start, stop)
