"""External sort and merge of rows in value order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.data.arrays.batches import retype_batch
from lancelake.expr.stream_query import stream_query
from lancelake.index.kind import ROW_ID, VALUE
from lancelake.index.order import Key, keys_of, search, sort_positions

_BATCH_ROWS = 1 << 16
# DataFusion orders floating-point numbers, texts and bytes as indices do.
_QUERY = f'SELECT "{VALUE}", "{ROW_ID}" FROM rows ORDER BY "{VALUE}" ASC NULLS FIRST'


def row_schema(dtype: pa.DataType) -> pa.Schema:
    """Return the schema of batches of values and row ids."""
    return pa.schema([pa.field(VALUE, dtype), pa.field(ROW_ID, pa.uint64(), nullable=False)])


def value_sorted(dtype: pa.DataType, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in value order, nulls first, spilling to disk if they do not fit into memory."""
    schema = row_schema(dtype)
    rows = (batch.select([VALUE, ROW_ID]).cast(schema) for batch in batches)
    for batch in stream_query(_QUERY, schema, rows, batch_rows=_BATCH_ROWS):
        yield retype_batch(batch, schema)


def merge_sorted(
    dtype: pa.DataType, streams: Sequence[Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Merge streams in value order into one; a batch of each is in memory."""
    heads = [_Head(dtype, iter(stream)) for stream in streams]
    nulls_left = heads
    while nulls_left:
        yield from (nulls for head in nulls_left if (nulls := head.take_nulls()) is not None)
        nulls_left = [head for head in nulls_left if head.fill() and head.starts_with_null]
    while heads := [head for head in heads if head.fill()]:
        # All rows up to the least of the last keys are there.
        horizon = min(head.last_key for head in heads)
        ready = [part for head in heads if (part := head.take_up_to(horizon)).num_rows]
        yield ready[0] if len(ready) == 1 else _sort_together(ready)


def _sort_together(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    rows = pa.concat_batches(parts)
    return rows.take(pa.array(sort_positions(keys_of(rows.column(0)))))


@dataclass
class _Head:
    """The part of a stream that was read and not yet taken."""

    dtype: pa.DataType
    stream: Iterator[pa.RecordBatch]
    rows: pa.RecordBatch | None = None
    keys: pa.Array | None = None

    def fill(self) -> bool:
        """Read the next batch if there is none; False at the end of the stream."""
        while self.rows is None:
            batch = next(self.stream, None)
            if batch is None:
                return False
            if batch.num_rows:
                self.rows = batch.select([VALUE, ROW_ID]).cast(row_schema(self.dtype))
                self.keys = keys_of(self.rows.column(0))
        return True

    @property
    def starts_with_null(self) -> bool:
        """Whether the next row is null."""
        return self.keys is not None and self.keys.null_count > 0

    @property
    def last_key(self) -> Key:
        """The greatest key that was read."""
        assert self.keys is not None  # filled
        return self.keys[-1].as_py()

    def take_nulls(self) -> pa.RecordBatch | None:
        """Take the nulls at the start of what was read."""
        if not self.fill() or self.rows is None or self.keys is None:
            return None
        return self._take(self.keys.null_count) if self.keys.null_count else None

    def take_up_to(self, key: Key) -> pa.RecordBatch:
        """Take the rows whose key is not greater."""
        assert self.keys is not None  # filled
        (count,) = search(self.keys, pa.array([key], self.keys.type), "right")
        return self._take(int(count))

    def _take(self, count: int) -> pa.RecordBatch:
        assert self.rows is not None  # filled
        assert self.keys is not None
        taken, is_all = self.rows.slice(0, count), count == self.rows.num_rows
        self.rows = None if is_all else self.rows.slice(count)
        self.keys = None if is_all else self.keys.slice(count)
        return taken
