"""Reading of blob values for a scan, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancelake.data.arrays.retype import struct_of
from lancelake.data.blobs.reads import StoredBlob, locate, read_all
from lancelake.errors import UnsupportedError
from lancelake.format.blobs import has_blobs
from lancelake.format.column_path import quote_segment
from lancelake.format.schema import Field
from lancelake.scan.outputs import ColumnOutput
from lancelake.scan.plan import ScanTask

_BATCH_BYTES = 32 << 20

_Found = list[StoredBlob | None]


def with_blob_values(task: ScanTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, with blobs as bytes if requested."""
    if task.spec.valued_schema is None:
        return batches
    return _filled(task, batches)


def _filled(task: ScanTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    spec = task.spec
    stored = [
        output.stored_blobs(spec.table_schema) if isinstance(output, ColumnOutput) else None
        for output in spec.outputs
    ]
    for batch in batches:
        columns = list(zip(stored, batch.columns, strict=True))
        found = [_located(task, field, array) if field else [] for field, array in columns]
        for start, stop in _spans(batch.num_rows, [blobs for part in found for blobs in part]):
            arrays = [
                _valued(field, array[start:stop], iter([blobs[start:stop] for blobs in part]))
                if field
                else array[start:stop]
                for (field, array), part in zip(columns, found, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=spec.valued_schema)


def _located(task: ScanTask, stored: Field, array: pa.Array) -> list[_Found]:
    """Find the blobs of each blob column of a field."""
    if stored.is_blob_v1 or stored.is_blob_v2:
        return [locate(task.spec.files, task.fragment, stored, array)]
    members = zip(stored.children, _members(stored, array), strict=True)
    return [f for child, part in members if has_blobs(child) for f in _located(task, child, part)]


def _valued(stored: Field, array: pa.Array, found: Iterator[_Found]) -> pa.Array:
    """Replace descriptors by bytes, one column after the other."""
    if stored.is_blob_v1 or stored.is_blob_v2:
        return pa.array(read_all(next(found)), pa.large_binary())
    if not has_blobs(stored):
        return array
    members = zip(stored.children, _members(stored, array), strict=True)
    children = [_valued(child, part, found) for child, part in members]
    fields = [array.type.field(i).with_type(child.type) for i, child in enumerate(children)]
    return struct_of(children, fields, array)


def _members(stored: Field, array: pa.Array) -> Sequence[pa.Array]:
    if stored.logical_type != "struct":
        where = quote_segment(stored.name)
        msg = f"column {where} has blobs inside a {stored.logical_type}, which cannot be read"
        raise UnsupportedError(msg, action="Read their descriptions.", column=where)
    return [array.field(i) for i in range(array.type.num_fields)]


def _spans(rows: int, columns: Sequence[_Found]) -> Iterator[tuple[int, int]]:
    """Split rows into spans within the byte limit of a batch."""
    start, total = 0, 0
    for row in range(rows):
        size = sum(blob.size for blobs in columns if (blob := blobs[row]) is not None)
        if row > start and total + size > _BATCH_BYTES:
            yield start, row
            start, total = row, 0
        total += size
    yield start, rows
