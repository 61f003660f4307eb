"""The live rows of a fragment as data files keep them, with the bytes of blobs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.row_meta import META_TYPE, MetaColumn, RowMeta
from lancelake.data.table_files import FileAt, TableFiles
from lancelake.errors import LanceTableError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.rows import LiveRows
from lancelake.scan.width import column_widths, row_bytes
from lancelake.table.compact.blob_columns import value_field, with_blobs

LINEAGE = (MetaColumn.ROW_ID, MetaColumn.CREATED_AT, MetaColumn.LAST_UPDATED_AT)
"""What a row takes with it where row ids are stable."""

_CHUNK_BYTES = 4 << 20
_CHUNK_ROWS = 1 << 16
_WINDOW_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The version that is read."""

    files: TableFiles
    manifest_at: FileAt
    version: int
    schema: Schema
    has_stable_row_ids: bool

    @property
    def columns(self) -> pa.Schema:
        """Schema of the rows without their lineage."""
        fields = [value_field(field) or storage_field(field) for field in self.schema.fields]
        return pa.schema(fields)

    @property
    def row_schema(self) -> pa.Schema:
        """Schema of the rows as `stored_rows` yields them: columns, then lineage."""
        lineage = LINEAGE if self.has_stable_row_ids else ()
        metas = [pa.field(meta.value, META_TYPE) for meta in lineage]
        return pa.schema([*self.columns, *metas])


def stored_rows(
    source: Source, fragment: Fragment, batch_rows: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows in order, in batches of bounded size, with their lineage."""
    try:
        yield from _rows(source, fragment, batch_rows)
    except LanceTableError as error:
        raise error.at(source.files.root.uri, source.version) from error.__cause__


def row_width(source: Source, fragment: Fragment) -> float:
    """Estimate the bytes of a row, at least one."""
    return max(1.0, row_bytes(fragment, column_widths(source.schema), source.schema))


def lineage_of_all(source: Source, fragment: Fragment) -> pa.RecordBatch:
    """Return the lineage of every row of a fragment, deleted or not."""
    rows = fragment.physical_rows or 0
    meta = RowMeta(source.files, fragment, rows, source.has_stable_row_ids)
    columns = _lineage(meta, np.arange(rows, dtype=np.uint64))
    return pa.RecordBatch.from_arrays(columns, names=[column.value for column in LINEAGE])


def _rows(source: Source, fragment: Fragment, batch_rows: int | None) -> Iterator[pa.RecordBatch]:
    reader = FragmentReader(source.files, source.manifest_at, fragment, source.schema)
    live = LiveRows(load_deletions(source.files, fragment))
    rows = reader.physical_rows
    meta = RowMeta(source.files, fragment, rows, source.has_stable_row_ids)
    step = _step(source, fragment, batch_rows)
    schema = source.row_schema
    first = 0
    for batch in _windowed(reader, rows, step, source):
        last = first + batch.num_rows
        mask = live.mask(first, last)
        offsets = np.arange(first, last, dtype=np.uint64)
        kept = batch if mask is None else batch.filter(pa.array(mask))
        first = last
        if not kept.num_rows:
            continue
        lineage = _lineage(meta, offsets if mask is None else offsets[mask])
        for columns, start in with_blobs(source.files, fragment, source.schema, kept):
            parts = [column.slice(start, len(columns[0])) for column in lineage]
            yield pa.RecordBatch.from_arrays([*columns, *parts], schema=schema)


def _windowed(
    reader: FragmentReader, rows: int, step: int, source: Source
) -> Iterator[pa.RecordBatch]:
    """Read all rows, never so many at once that what the codec reads ahead takes much memory."""
    width = row_width(source, reader.fragment)
    window = step * max(1, int(_WINDOW_BYTES / (width * step)))
    for start in range(0, rows, window):
        yield from reader.batches(start=start, stop=min(start + window, rows), batch_rows=step)


def _lineage(meta: RowMeta, offsets: RowOffsets) -> list[pa.Array]:
    if not meta.has_stable_row_ids:
        return []
    return [meta.column(column, offsets, offsets) for column in LINEAGE]


def _step(source: Source, fragment: Fragment, batch_rows: int | None) -> int:
    most = min(_CHUNK_ROWS, batch_rows or _CHUNK_ROWS)
    return max(1, min(most, int(_CHUNK_BYTES / row_width(source, fragment))))
