"""Source rows of a join: in memory if they are few, else in a local file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.clock import SystemIds
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.write_task import WriteTask
from lancelake.errors import UnsupportedError
from lancelake.format.arrow_schema import from_arrow, storage_schema
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.ids import MAX_ROWS
from lancelake.format.schema import Schema
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles

MEMORY_BYTES = 256 << 20
_KEYS_AT_ONCE = 8 << 20
_KEY = "key"

Rows = npt.NDArray[np.int64]
"""Row numbers of the source; -1 without a match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRows:
    """Keys and values in memory."""

    keys: pa.Array
    values: pa.RecordBatch

    @property
    def schema(self) -> pa.Schema:
        """Schema of the values."""
        return self.values.schema

    @property
    def row_bytes(self) -> int:
        """Estimated bytes of the values of a row."""
        return max(1, int(self.values.nbytes) // max(1, int(self.values.num_rows)))

    def key_chunks(self) -> Iterator[pa.Array]:
        """Yield the keys in order."""
        yield self.keys

    def take(self, rows: Rows) -> pa.RecordBatch:
        """Return the values of rows, in the order requested; null where there is no row."""
        return self.values.take(pa.array(rows, mask=rows < 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Keys and values in a data file outside the table."""

    files: TableFiles
    fragment: Fragment
    fields: Schema
    row_bytes: int

    @property
    def schema(self) -> pa.Schema:
        """Schema of the values."""
        return storage_schema(self._values)

    def key_chunks(self) -> Iterator[pa.Array]:
        """Yield the keys in order."""
        reader = self._reader(replace(self.fields, fields=self.fields.fields[:1]))
        rows = reader.physical_rows
        for batch in reader.batches(start=0, stop=rows, batch_rows=_KEYS_AT_ONCE):
            yield batch.column(0)

    def take(self, rows: Rows) -> pa.RecordBatch:
        """Return the values of rows, in the order requested; null where there is no row."""
        reader = self._reader(self._values)
        unique, places = np.unique(rows[rows >= 0], return_inverse=True)
        if not len(unique):
            arrays = [pa.nulls(len(rows), field.type) for field in self.schema]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        first, last = int(unique[0]), int(unique[-1]) + 1
        if last - first == len(unique):
            parts = reader.batches(start=first, stop=last, batch_rows=last - first)
            found = pa.concat_batches(list(parts))
        else:
            found = reader.take(unique.astype(np.uint64))
        if len(unique) == len(rows) and bool(np.all(np.diff(rows) > 0)):
            return found
        order = np.full(len(rows), -1, dtype=np.int64)
        order[rows >= 0] = places
        return found.take(pa.array(order, mask=order < 0))

    @property
    def _values(self) -> Schema:
        return replace(self.fields, fields=self.fields.fields[1:])

    def _reader(self, schema: Schema) -> FragmentReader:
        nowhere = FileAt(root=self.files.root, path="")
        return FragmentReader(self.files, nowhere, self.fragment, schema)


JoinRows = MemoryRows | FileRows


def join_rows(
    reader: pa.RecordBatchReader,
    key: str,
    *,
    scratch: Location,
    memory_bytes: int = MEMORY_BYTES,
) -> JoinRows:
    """Read all rows of a stream; if they are too many they are written to a file in `scratch`."""
    schema = _ordered(reader.schema, key)
    batches = (_with_key_first(batch, key, schema) for batch in reader)
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > memory_bytes:
            return _in_file(chain(_drained(held), batches), schema, scratch)
    whole = pa.Table.from_batches(held, schema=schema).combine_chunks()
    return MemoryRows(
        keys=whole.column(0).combine_chunks(), values=_one_batch(whole.remove_column(0))
    )


def _in_file(batches: Iterator[pa.RecordBatch], schema: pa.Schema, scratch: Location) -> FileRows:
    fields = from_arrow(schema)
    for field in fields.walk():
        if field.is_blob_v1 or field.is_blob_v2:
            msg = (
                f"column {field.name} contains blobs, and has too many rows to be joined in memory"
            )
            raise UnsupportedError(msg, column=field.name, action="Join fewer rows at a time.")
    task = WriteTask(
        root=scratch,
        schema=fields,
        file_version=FileVersion.V2_2,
        max_rows_per_file=MAX_ROWS,
        newest_readers_only=True,
    )
    stream = pa.RecordBatchReader.from_batches(schema, batches)
    (fragment,) = write_fragments(task, stream, ids=SystemIds())
    size = fragment.files[0].file_size_bytes or 0
    return FileRows(
        files=TableFiles(root=scratch),
        fragment=fragment,
        fields=fields,
        row_bytes=max(1, size // max(1, fragment.physical_rows or 0)),
    )


def _drained(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches and release each of them."""
    held.reverse()
    while held:
        yield held.pop()


def _ordered(schema: pa.Schema, key: str) -> pa.Schema:
    """Move the key to the front, under a unique name."""
    values = [field for field in schema if field.name != key]
    name = _KEY
    while any(field.name == name for field in values):
        name += "_"
    return pa.schema([schema.field(key).with_name(name), *values])


def _with_key_first(batch: pa.RecordBatch, key: str, schema: pa.Schema) -> pa.RecordBatch:
    values = [batch.column(field.name) for field in batch.schema if field.name != key]
    return pa.RecordBatch.from_arrays([batch.column(key), *values], schema=schema)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
