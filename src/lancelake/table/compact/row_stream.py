"""A stream of batches consumed by number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lancelake.errors import CorruptTableError


class RowStream:
    """Returns the rows of a stream in order."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Take rows from these batches."""
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def next_rows(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield the next `count` rows, fewer at the end of the stream."""
        if count < 0:
            raise CorruptTableError(f"a fragment claims {count} rows, but the stream has fewer")
        left = count
        while left:
            batch = next(self._batches, None) if self._rest is None else self._rest
            if batch is None:
                return
            part = batch.slice(0, left)
            self._rest = batch.slice(left) if batch.num_rows > left else None
            left -= part.num_rows
            yield part


def spread(rows: int, files: int) -> tuple[int, ...]:
    """Distribute rows evenly over files."""
    least, more = divmod(rows, files)
    return tuple(least + (number < more) for number in range(files))
