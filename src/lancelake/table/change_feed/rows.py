"""Live rows of a fragment, with their values in the columns of the last version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelake.data.arrays.row_difference import Mask
from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.projection import project
from lancelake.data.row_meta import MetaColumn, RowMeta
from lancelake.errors import SchemaMismatchError
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.blobs import described_schema
from lancelake.format.computed_once import computed_once
from lancelake.format.rowids.segment import U64Array
from lancelake.format.schema import Schema
from lancelake.scan.live_rows import LiveRows
from lancelake.scan.row_width import column_widths, row_bytes
from lancelake.table.change_feed.fragments import has_same_rows
from lancelake.table.change_feed.tasks import FeedSpec, Side, needed_columns

# Large chunks cost less per row to decode; two chunks, before and after, are in memory at once.
_CHUNK_BYTES = 8 << 20
_CHUNK_ROWS = 1 << 16
# Fetching a single row costs about as much as streaming this many bytes.
_ROW_FETCH_BYTES = 8000
_NO_COLUMN = "__nothing"


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """Rows of a fragment by offset, each with its row id and last updated version."""

    offsets: RowOffsets
    ids: U64Array
    last_updated: U64Array

    def kept(self, mask: Mask) -> FragmentRows:
        """Return those rows where the mask is true."""
        return FragmentRows(self.offsets[mask], self.ids[mask], self.last_updated[mask])

    def at(self, places: np.ndarray) -> FragmentRows:
        """Return the rows at these positions, in that order."""
        return FragmentRows(self.offsets[places], self.ids[places], self.last_updated[places])


def live_rows(side: Side) -> FragmentRows:
    """Find the live rows of a fragment; reads its deletions, but no data file."""
    reader = FragmentReader(side.at.files, side.at.manifest_at, side.fragment, Schema(fields=()))
    rows = reader.physical_rows
    offsets = np.arange(rows, dtype=np.uint64)
    live = LiveRows(load_deletions(side.at.files, side.fragment)).mask(0, rows)
    if live is not None:
        offsets = offsets[live]
    meta = RowMeta(side.at.files, side.fragment, rows, has_stable_row_ids=True)
    updated = meta.column(MetaColumn.LAST_UPDATED_AT, offsets, offsets)
    return FragmentRows(offsets, meta.row_ids(offsets), updated.to_numpy())


def unshared_rows(side: Side, others: Sequence[Side]) -> FragmentRows:
    """Find the live rows of a fragment that are in none of the other fragments."""
    rows = live_rows(side)
    for other in sorted(others, key=lambda o: not has_same_rows(side.fragment, o.fragment)):
        if not len(rows.ids):
            break
        if has_same_rows(side.fragment, other.fragment):
            deleted = load_deletions(other.at.files, other.fragment)
            gone = np.frombuffer(deleted.to_array(), dtype=np.uint32)
            rows = rows.kept(np.isin(rows.offsets, gone, assume_unique=True))
        else:
            shared = np.isin(rows.ids, live_rows(other).ids, assume_unique=True)
            rows = rows.kept(~shared)
    return rows


class SideReader:
    """Reads rows of one fragment in the schema of the last version."""

    def __init__(self, side: Side, spec: FeedSpec, more: tuple[str, ...] = ()) -> None:
        """Read the columns that outputs and filter need, and the additional ones."""
        paths = tuple((name,) for name in dict.fromkeys((*needed_columns(spec), *more)))
        self._side = side
        self._view = project(side.at.view, paths)
        self._target = storage_schema(described_schema(project(spec.last, paths)))
        self._reader = FragmentReader(side.at.files, side.at.manifest_at, side.fragment, self._view)

    @computed_once
    def chunk_rows(self) -> int:
        """Number of rows to read at a time so that a chunk has a bounded size."""
        return max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / self._width)))

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, which must be ascending and unique."""
        parts = [batch for batch, _ in self.stream(offsets)]
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def stream(self, offsets: RowOffsets) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield the rows at ascending offsets, each batch with the position of its first row."""
        first, last = int(offsets[0]), int(offsets[-1]) + 1
        if len(offsets) * _ROW_FETCH_BYTES < (last - first) * self._width:
            for start in range(0, len(offsets), self.chunk_rows):
                part = offsets[start : start + self.chunk_rows]
                yield self._cast(self._reader.take(part)), start
            return
        place = 0
        for batch in self._reader.batches(start=first, stop=last, batch_rows=self.chunk_rows):
            end = int(np.searchsorted(offsets, np.uint64(first + batch.num_rows)))
            if end - place == batch.num_rows:
                yield self._cast(batch), place
            elif end > place:
                wanted = offsets[place:end] - np.uint64(first)
                yield self._cast(batch).take(pa.array(wanted)), place
            first, place = first + batch.num_rows, end

    @computed_once
    def _width(self) -> float:
        return max(1.0, row_bytes(self._side.fragment, column_widths(self._view), self._view))

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Cast the columns to their types in the last version."""
        if not self._target.names:
            # A batch needs a column to have a length.
            return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], names=[_NO_COLUMN])
        columns = [
            batch.column(i) if batch.column(i).type.equals(field.type) else self._as(batch, field)
            for i, field in enumerate(self._target)
        ]
        return pa.RecordBatch.from_arrays(columns, names=self._target.names)

    def _as(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        try:
            return batch.column(field.name).cast(field.type)
        except pa.ArrowException as error:
            version = self._side.at.version
            problem = (
                f"a value of column {field.name} in version {version} cannot be cast to "
                f"{field.type}: {error}"
            )
            action = "Omit the column, or end before the version that changed its type."
            raise SchemaMismatchError(
                problem, version=version, action=action, column=field.name
            ) from error
