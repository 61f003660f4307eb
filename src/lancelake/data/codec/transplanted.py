"""Column reader for columns that the codec misreads, through transplants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lancelake.data.arrays.rebatch import rebatched
from lancelake.data.codec import spool
from lancelake.data.codec.column_transplant import Transplant, transplant, windows
from lancelake.data.codec.container import Container
from lancelake.data.codec.official import file_reader
from lancelake.data.codec.readers import explained
from lancelake.data.column_reader import RowOffsets
from lancelake.data.file_to_table import FileShape, shaped

if TYPE_CHECKING:
    from lance.file import LanceFileReader

# Bytes of the original that are copied to local disk at a time.
_WINDOW_BYTES = 64 << 20
_READAHEAD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TransplantedColumns:
    """Some columns of one file; windows of them are copied to local disk, read and removed."""

    schema: pa.Schema
    container: Container
    plan: Transplant
    shapes: tuple[FileShape, ...]

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""
        return int(self.container.descriptor().length)

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        return rebatched(self._windows(start, stop, batch_rows), batch_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        parts = [self._empty()]
        if len(offsets):
            span = range(int(offsets[0]), int(offsets[-1]) + 1)
            for window in windows(self.container, self.plan, span, max_bytes=_WINDOW_BYTES):
                low, high = np.searchsorted(offsets, [window.start, window.stop])
                if high > low:
                    parts.append(self._take_within(window, offsets[low:high]))
        return pa.concat_batches(parts)

    def _take_within(self, window: range, offsets: RowOffsets) -> pa.RecordBatch:
        with self._reader(window) as reader:
            rows = reader.take_rows(offsets.tolist(), batch_size=len(offsets)).to_batches()
            return self._shaped(pa.concat_batches(list(rows)))

    def _windows(self, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        span = range(start, stop)
        for window in windows(self.container, self.plan, span, max_bytes=_WINDOW_BYTES):
            with self._reader(window) as reader:
                result = reader.read_range(
                    window.start, len(window), batch_size=batch_rows, batch_readahead=_READAHEAD
                )
                for batch in result.to_batches():
                    yield self._shaped(batch)

    @contextmanager
    def _reader(self, rows: range) -> Iterator[LanceFileReader]:
        """Open a temporary transplant of these rows."""
        target = spool.fresh_path()
        try:
            with explained(self.container.source.name):
                transplant(self.container, self.plan, target, rows=rows)
                yield file_reader(str(target))
        finally:
            target.unlink(missing_ok=True)

    def _shaped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return shaped(batch, self.shapes, self.schema, self.container.source.name)

    def _empty(self) -> pa.RecordBatch:
        arrays = [pa.array([], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
