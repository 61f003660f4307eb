"""Source rows of a merge, stored for repeated reads by row number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec import spool

RowNumbers = npt.NDArray[np.int64]

MEMORY_BYTES = 256 << 20
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """Rows in memory, or in a local file that is memory-mapped for reading."""

    rows: pa.Table | Path
    num_rows: int
    schema: pa.Schema
    nbytes: int

    def table(self) -> pa.Table:
        """Return all rows; those in a file are loaded on access."""
        if isinstance(self.rows, pa.Table):
            return self.rows
        with pa.memory_map(str(self.rows)) as mapped:
            found = pa.ipc.open_file(mapped).read_all()
        return found if found.schema.names == self.schema.names else found.select(self.schema.names)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of all rows."""
        return self.table().select(list(names))

    def without(self, column: str) -> SourceRows:
        """Return the same rows without a column."""
        schema = self.schema.remove(self.schema.get_field_index(column))
        rows = self.rows.select(schema.names) if isinstance(self.rows, pa.Table) else self.rows
        return replace(self, rows=rows, schema=schema)

    def batches(
        self, numbers: RowNumbers, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows with these numbers, in their order."""
        table = self.table() if columns is None else self.columns(columns)
        for part in parts(numbers, self.batch_rows):
            yield taken(table, part)

    @property
    def batch_rows(self) -> int:
        """Number of rows of a batch of bounded size."""
        width = self.nbytes / self.num_rows if self.num_rows else 0
        return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / width))) if width else _BATCH_ROWS


def parts(numbers: RowNumbers, size: int) -> Iterator[RowNumbers]:
    """Split numbers into runs of this length."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def taken(table: pa.Table, numbers: RowNumbers) -> pa.RecordBatch:
    """Return the selected rows of a table as one batch."""
    if not table.num_columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(numbers), pa.struct([])))
    is_run = len(numbers) > 0 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1
    if is_run and bool(np.all(np.diff(numbers) == 1)):
        found = table.slice(int(numbers[0]), len(numbers))
    else:
        found = table.take(pa.array(numbers))
    return as_batch(found)


def as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    combined = table.combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in combined.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


@contextmanager
def kept(reader: pa.RecordBatchReader, *, memory_bytes: int = MEMORY_BYTES) -> Iterator[SourceRows]:
    """Read a source to its end; beyond the memory limit it is spilled to disk."""
    rows = _read(reader, memory_bytes)
    try:
        yield rows
    finally:
        if isinstance(rows.rows, Path):
            rows.rows.unlink()


def _read(reader: pa.RecordBatchReader, memory_bytes: int) -> SourceRows:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        held.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            return _spooled(reader, held)
    table = pa.Table.from_batches(held, reader.schema)
    return SourceRows(rows=table, num_rows=table.num_rows, schema=reader.schema, nbytes=size)


def _spooled(reader: pa.RecordBatchReader, held: list[pa.RecordBatch]) -> SourceRows:
    path = spool.fresh_path()
    rows = size = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
        while held:
            batch = held.pop(0)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            writer.write_batch(batch)
        for batch in reader:
            rows, size = rows + batch.num_rows, size + batch.nbytes
            writer.write_batch(batch)
    return SourceRows(rows=path, num_rows=rows, schema=reader.schema, nbytes=size)
