"""Rows of fragments as a compaction carries them over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.batches import InvalidText, retype
from lancelake.data.arrays.conform import Conformer
from lancelake.data.blobs import value_field, with_blobs
from lancelake.data.column_reader import RowOffsets
from lancelake.data.fragment_reader import (
    META_TYPE,
    FragmentReader,
    MetaColumn,
    RowMeta,
    load_deletions,
)
from lancelake.errors import CorruptTableError, LanceTableError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.logical_types import described, has_blobs
from lancelake.format.rowids import Range, RowIdSequence, U64Array, VersionSequence
from lancelake.format.schema import Field, Schema
from lancelake.scan.plan import Widths, column_widths, row_bytes
from lancelake.scan.task_rows import LiveRows
from lancelake.storage.table_files import FileAt, TableFiles

LINEAGE = (MetaColumn.ROW_ID, MetaColumn.CREATED_AT, MetaColumn.LAST_UPDATED_AT)
"""Lineage columns that a row keeps if row ids are stable."""

_CHUNK_BYTES = 4 << 20
_CHUNK_ROWS = 1 << 16
_WINDOW_BYTES = 16 << 20

# Below this fraction of requested rows, rows are read individually.
_SPARSE_SHARE = 0.25
# Wide rows are also read individually if any is deleted: filtering a batch copies the others.
_WIDE_ROW_BYTES = 2048


@dataclass(frozen=True, kw_only=True)
class Source:
    """The version that is read."""

    files: TableFiles
    manifest_at: FileAt
    version: int
    schema: Schema
    has_stable_row_ids: bool

    @computed_once
    def columns(self) -> pa.Schema:
        """Schema of the rows without their lineage."""
        fields = [value_field(field) or storage_field(field) for field in self.schema.fields]
        return pa.schema(fields)

    @computed_once
    def row_schema(self) -> pa.Schema:
        """Schema of the rows that `stored_rows` yields: columns, then lineage."""
        return pa.schema([*self.columns, *self._lineage])

    @computed_once
    def described_schema(self) -> pa.Schema:
        """Schema of the rows that `described_rows` yields: columns, then lineage."""
        fields = [storage_field(described(field)) for field in self.schema.fields]
        return pa.schema([*fields, *self._lineage])

    @computed_once
    def widths(self) -> Widths:
        """Bytes per row of each column, None if it varies."""
        return column_widths(self.schema)

    @computed_once
    def has_blobs(self) -> bool:
        """Whether a column is, or contains, blobs."""
        return any(has_blobs(field) for field in self.schema.fields)

    @property
    def _lineage(self) -> list[pa.Field]:
        lineage = LINEAGE if self.has_stable_row_ids else ()
        return [pa.field(meta.value, META_TYPE) for meta in lineage]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRows:
    """Rows with blob descriptors, and their positions in the fragment."""

    batch: pa.RecordBatch
    offsets: RowOffsets


def stored_rows(
    source: Source, fragment: Fragment, batch_rows: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield the live rows in order, in batches of bounded size, with their lineage."""
    count = len(source.schema.fields)
    schema = source.row_schema
    for rows in described_rows(source, fragment, batch_rows):
        if not source.has_blobs:
            yield rows.batch
            continue
        columns, lineage = rows.batch.select(range(count)), rows.batch.columns[count:]
        for values, start in with_blobs(source.files, fragment, source.schema, columns):
            parts = [column.slice(start, len(values[0])) for column in lineage]
            yield pa.RecordBatch.from_arrays([*values, *parts], schema=schema)


def described_rows(
    source: Source, fragment: Fragment, batch_rows: int | None, left_out: BitMap | None = None
) -> Iterator[DescribedRows]:
    """Yield the live rows in order, except excluded ones, with their lineage."""
    try:
        yield from _rows(source, fragment, batch_rows, left_out or BitMap())
    except LanceTableError as error:
        raise error.at(source.files.root.uri, source.version) from error.__cause__


def row_width(source: Source, fragment: Fragment) -> float:
    """Estimate the bytes of a row, at least one."""
    return max(1.0, row_bytes(fragment, source.widths, source.schema))


def lineage_of_all(source: Source, fragment: Fragment) -> pa.RecordBatch:
    """Return the lineage of every row of a fragment, including deleted ones."""
    rows = fragment.physical_rows or 0
    meta = RowMeta(source.files, fragment, rows, source.has_stable_row_ids)
    columns = _lineage(meta, np.arange(rows, dtype=np.uint64))
    return pa.RecordBatch.from_arrays(columns, names=[column.value for column in LINEAGE])


def _rows(
    source: Source, fragment: Fragment, batch_rows: int | None, left_out: BitMap
) -> Iterator[DescribedRows]:
    reader = FragmentReader(source.files, source.manifest_at, fragment, source.schema)
    deleted = load_deletions(source.files, fragment)
    live = LiveRows(deleted | left_out if left_out else deleted)
    meta = RowMeta(source.files, fragment, reader.physical_rows, source.has_stable_row_ids)
    schema = source.described_schema
    for batch, offsets in _batches(reader, live, _step(source, fragment, batch_rows), source):
        columns = [*batch.columns, *_lineage(meta, offsets)]
        whole = pa.RecordBatch.from_arrays(columns, schema=schema)
        yield DescribedRows(batch=whole, offsets=offsets)


def _batches(
    reader: FragmentReader, live: LiveRows, step: int, source: Source
) -> Iterator[tuple[pa.RecordBatch, RowOffsets]]:
    """Read live rows in order, with their positions."""
    rows = reader.physical_rows
    kept = live.count(0, rows)
    is_wide = row_width(source, reader.fragment) > _WIDE_ROW_BYTES
    if kept < _SPARSE_SHARE * rows or (is_wide and kept < rows):
        yield from _single_rows(reader, live, step)
        return
    first = 0
    for batch in _windowed(reader, rows, step, source):
        last = first + batch.num_rows
        mask = live.mask(first, last)
        offsets = np.arange(first, last, dtype=np.uint64)
        first = last
        if mask is None:
            yield batch, offsets
        elif mask.any():
            yield batch.filter(pa.array(mask)), offsets[mask]


def _single_rows(
    reader: FragmentReader, live: LiveRows, step: int
) -> Iterator[tuple[pa.RecordBatch, RowOffsets]]:
    kept = BitMap(range(reader.physical_rows)) - live.deleted
    offsets = np.frombuffer(kept.to_array(), dtype=np.uint32).astype(np.uint64)
    for start in range(0, len(offsets), step):
        part = offsets[start : start + step]
        yield reader.take(part), part


def _windowed(
    reader: FragmentReader, rows: int, step: int, source: Source
) -> Iterator[pa.RecordBatch]:
    """Read all rows in windows that bound the memory of the codec's read-ahead."""
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


# Approximate size in a manifest of a range, and of a single row id outside of ranges.
_RANGE_BYTES = 12
_ID_BYTES = 4


@dataclass(slots=True)
class CarriedRows:
    """Collects the lineage of rows in write order, and assigns it to new fragments.

    Each lineage batch has three columns: row id, created-at version, last-updated-at version.
    """

    _waiting: deque[pa.RecordBatch] = field(default_factory=deque)

    def add(self, lineage: pa.RecordBatch) -> None:
        """Add the lineage of rows that are about to be written."""
        self._waiting.append(lineage)

    def given_to(self, fragment: Fragment) -> Fragment:
        """Return the next fragment with the lineage of its rows."""
        rows = fragment.physical_rows or 0
        if not 0 < rows <= sum(batch.num_rows for batch in self._waiting):
            problem = f"{rows} rows were written whose row ids and versions are unknown"
            raise CorruptTableError(problem, fragment=fragment.id)
        ids, created, updated = self._next(rows)
        return replace(
            fragment,
            row_ids=row_ids(ids).encode(),
            created_at_versions=versions(created).encode(),
            last_updated_at_versions=versions(updated).encode(),
        )

    def _next(self, rows: int) -> list[U64Array]:
        parts: list[pa.RecordBatch] = []
        while rows:
            batch = self._waiting.popleft()
            parts.append(batch.slice(0, rows))
            if batch.num_rows > rows:
                self._waiting.appendleft(batch.slice(rows))
            rows -= parts[-1].num_rows
        count = parts[0].num_columns if parts else 0
        return [np.concatenate([part.column(i).to_numpy() for part in parts]) for i in range(count)]


def row_ids(ids: U64Array) -> RowIdSequence:
    """Encode ids as ranges if they form few ranges, else as one segment."""
    ends = np.flatnonzero(np.diff(ids) != 1) + 1
    if (len(ends) + 1) * _RANGE_BYTES > len(ids) * _ID_BYTES:
        return RowIdSequence.of(ids)
    starts = [0, *ends.tolist()]
    stops = [*ends.tolist(), len(ids)]
    ranges = tuple(
        Range(start=int(ids[start]), end=int(ids[stop - 1]) + 1)
        for start, stop in zip(starts, stops, strict=True)
    )
    whole = RowIdSequence.of(ids)
    return min(RowIdSequence(ranges), whole, key=_size) if _ascends(ids) else RowIdSequence(ranges)


def versions(values: U64Array) -> VersionSequence:
    """Encode versions as runs."""
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    counts = np.diff(np.append(starts, len(values)))
    pairs = zip(counts.tolist(), values[starts].tolist(), strict=True)
    return VersionSequence(tuple(pairs))


def _ascends(ids: U64Array) -> bool:
    return bool(np.all(ids[1:] > ids[:-1]))


def _size(sequence: RowIdSequence) -> int:
    return len(sequence.encode())


@dataclass(frozen=True)
class Joinable:
    """Rewrites batches so that they can be concatenated."""

    schema: Schema
    version: FileVersion

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same values."""
        fields = self._conform.schema.fields
        if not fields:
            return batch
        conformed = self._conform(batch.select([column.name for column in fields]))
        for stored, column in zip(fields, conformed.columns, strict=True):
            position = batch.schema.get_field_index(stored.name)
            shown = batch.schema.field(position)
            batch = batch.set_column(position, shown, retype(column, shown.type))
        return batch

    @computed_once
    def _conform(self) -> Conformer:
        fields = tuple(field for field in self.schema.fields if _has_words(field))
        return Conformer(replace(self.schema, fields=fields), self.version, InvalidText.TRUST)


def _has_words(field: Field) -> bool:
    return any(node.logical_type.startswith("dict:") for node in field.walk())
