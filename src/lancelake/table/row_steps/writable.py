"""Convert scanned rows to rows that can be written again, with blobs by value."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa

from lancelake.data.blobs.values import value_field, with_blobs
from lancelake.format.blobs import has_blobs
from lancelake.format.schema import Field
from lancelake.scan.plan import ScanTask


def writable(
    task: ScanTask, batches: Iterator[pa.RecordBatch], *, without: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task; blobs of columns in `without` remain descriptors."""
    schema = task.spec.table_schema
    held = {f.name: f for f in schema.fields if has_blobs(f) and f.name not in without}
    for batch in batches:
        blobs = tuple(held[name] for name in batch.schema.names if name in held)
        if not blobs:
            yield batch
            continue
        stored = batch.select([field.name for field in blobs])
        chosen = replace(schema, fields=blobs)
        for columns, start in with_blobs(task.spec.files, task.fragment, chosen, stored):
            yield _with_values(batch.slice(start, len(columns[0])), blobs, columns)


def _with_values(
    batch: pa.RecordBatch, fields: tuple[Field, ...], columns: list[pa.Array]
) -> pa.RecordBatch:
    for field, column in zip(fields, columns, strict=True):
        position = batch.schema.get_field_index(field.name)
        batch = batch.set_column(position, value_field(field), column)
    return batch
