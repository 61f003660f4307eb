"""A scan task -> record batches; the same on a laptop and on an executor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.projection import project
from lancelake.data.row_meta import META_NAMES, MetaColumn, RowMeta
from lancelake.errors import LanceTableError
from lancelake.expr.predicate import RowFilter
from lancelake.format.schema import Schema
from lancelake.scan.finish import Finisher, needed_paths
from lancelake.scan.plan import ScanTask
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.scan.rows import LiveRows, Mask
from lancelake.scan.width import row_bytes

Paths = tuple[tuple[str, ...], ...]

_BATCH_BYTES = 32 << 20
_FILTER_ROWS = 1 << 16
_PROBE_ROWS = 1 << 13
# Fetching a single row costs about as much as streaming this many bytes.
_ROW_FETCH_BYTES = 8000


def execute(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in order."""
    run = _TaskRun(task)
    rows = run.unfiltered() if task.spec.predicate is None else run.filtered()
    try:
        yield from _limited(rows, task.row_limit)
    except LanceTableError as error:
        raise error.at(task.spec.files.root.uri, task.spec.version) from error.__cause__


def count(task: ScanTask) -> int:
    """Count the rows of a task that its predicate keeps."""
    return sum(len(kept) for _, _, kept in _TaskRun(task).kept_rows())


class _TaskRun:
    def __init__(self, task: ScanTask) -> None:
        self._task = task
        self._spec = task.spec
        self._whole = self._reader(())
        self._stop = self._whole.physical_rows if task.stop is None else task.stop
        self._finisher = Finisher.of(task.spec)
        self._output_paths = needed_paths(task.spec.outputs)
        deleted = BitMap() if task.spec.include_deleted_rows else self._deleted
        self._live = LiveRows(deleted, task.live_before)

    @cached_property
    def _deleted(self) -> BitMap:
        return load_deletions(self._spec.files, self._task.fragment)

    @cached_property
    def _meta(self) -> RowMeta:
        return RowMeta(
            self._spec.files,
            self._task.fragment,
            self._whole.physical_rows,
            self._spec.has_stable_row_ids,
        )

    def unfiltered(self) -> Iterator[pa.RecordBatch]:
        """Yield all live rows."""
        reader = self._reader(self._output_paths)
        batch_rows = self._batch_rows(reader.schema)
        if self._task.row_limit is not None:
            batch_rows = max(1, min(batch_rows, self._task.row_limit))
        first = self._task.start
        for batch in reader.batches(start=first, stop=self._stop, batch_rows=batch_rows):
            last = first + batch.num_rows
            mask = self._live.mask(first, last)
            offsets = np.arange(first, last, dtype=np.uint64)
            if mask is not None:
                batch, offsets = batch.filter(pa.array(mask)), offsets[mask]
            if len(offsets):
                yield self._finish(batch, offsets)
            first = last

    def filtered(self) -> Iterator[pa.RecordBatch]:
        """Yield the live rows that the predicate keeps."""
        batch_rows = self._batch_rows(self._columns(self._output_paths))
        for batch in self._filtered_chunks():
            for start in range(0, batch.num_rows, batch_rows):
                yield batch.slice(start, batch_rows)

    def _filtered_chunks(self) -> Iterator[pa.RecordBatch]:
        probe = min(self._stop, self._task.start + _PROBE_ROWS)
        seen = kept = 0
        rest = self._columns(self._late_paths)
        width = row_bytes(self._task.fragment, self._spec.table_schema, rest)
        late = self._spec.late
        if late is None:
            late = bool(rest.fields)
            for batch, offsets, positions in self.kept_rows(self._task.start, probe):
                seen, kept = seen + batch.num_rows, kept + len(positions)
                yield from self._fetch(batch, offsets, positions, width)
            late = late and kept * _ROW_FETCH_BYTES < seen * width
        else:
            probe = self._task.start
        if late:
            for batch, offsets, positions in self.kept_rows(probe, self._stop):
                yield from self._fetch(batch, offsets, positions, width)
            return
        paths = self._output_paths + self._filter_paths
        for batch, offsets, positions in self.kept_rows(probe, self._stop, paths):
            if len(positions):
                yield self._finish(batch.take(pa.array(positions)), offsets[positions])

    def kept_rows(
        self, start: int | None = None, stop: int | None = None, paths: Paths | None = None
    ) -> Iterator[tuple[pa.RecordBatch, RowOffsets, np.ndarray]]:
        """Yield chunks with the columns read, their offsets and the positions to keep."""
        reader = self._reader(self._filter_paths if paths is None else paths)
        chunk_rows = self._chunk_rows(reader.schema)
        first = self._task.start if start is None else start
        end = self._stop if stop is None else stop
        for batch in reader.batches(start=first, stop=end, batch_rows=chunk_rows):
            last = first + batch.num_rows
            offsets = np.arange(first, last, dtype=np.uint64)
            keep = self._keep(batch, offsets, self._live.mask(first, last))
            yield batch, offsets, np.flatnonzero(keep)
            first = last

    def _keep(self, batch: pa.RecordBatch, offsets: RowOffsets, live: Mask | None) -> Mask:
        keep = np.ones(batch.num_rows, dtype=np.bool_)
        if self._row_filter is not None:
            mask = self._row_filter(self._with_meta(batch, offsets))
            keep = mask.fill_null(False).to_numpy(zero_copy_only=False).astype(np.bool_)
        return keep if live is None else keep & live

    @cached_property
    def _row_filter(self) -> RowFilter | None:
        return None if self._spec.predicate is None else RowFilter(self._spec.predicate)

    def _with_meta(self, batch: pa.RecordBatch, offsets: RowOffsets) -> pa.RecordBatch:
        """Add the meta columns that the predicate looks at."""
        condition = self._spec.predicate
        named = {path[0] for path in condition.paths} if condition is not None else set()
        for name in META_NAMES:
            if name in named and name not in batch.schema.names:
                column = self._meta_column(MetaColumn(name), offsets)
                batch = batch.append_column(name, column)
        return batch

    def _fetch(
        self, batch: pa.RecordBatch, offsets: RowOffsets, positions: np.ndarray, width: float
    ) -> Iterator[pa.RecordBatch]:
        """Read the remaining columns of the rows that are kept."""
        if not len(positions):
            return
        wanted = offsets[positions]
        reader = self._reader(self._output_paths)
        if len(positions) * _ROW_FETCH_BYTES < batch.num_rows * width:
            rows = reader.take(wanted)
        else:
            first, last = int(offsets[0]), int(offsets[-1]) + 1
            whole = next(reader.batches(start=first, stop=last, batch_rows=last - first))
            rows = whole.take(pa.array(positions))
        yield self._finish(rows, wanted)

    def _finish(self, batch: pa.RecordBatch, offsets: RowOffsets) -> pa.RecordBatch:
        return self._finisher(batch, lambda meta: self._meta_column(meta, offsets))

    def _meta_column(self, meta: MetaColumn, offsets: RowOffsets) -> pa.Array:
        column = self._meta.column(meta, offsets, self._live.ranks(offsets))
        if self._spec.include_deleted_rows and meta is MetaColumn.ROW_ID and self._deleted:
            gone = np.isin(offsets, np.frombuffer(self._deleted.to_array(), dtype=np.uint32))
            return pa.array(column.to_numpy(), mask=gone)
        return column

    @cached_property
    def _filter_paths(self) -> Paths:
        condition = self._spec.predicate
        return () if condition is None else tuple(p for p in condition.paths)

    @cached_property
    def _late_paths(self) -> Paths:
        return tuple(p for p in self._output_paths if p not in self._filter_paths)

    def _columns(self, paths: Paths) -> Schema:
        return project(self._spec.table_schema, paths)

    def _reader(self, paths: Paths) -> FragmentReader:
        spec = self._spec
        schema = self._columns(paths)
        return FragmentReader(spec.files, spec.manifest_at, self._task.fragment, schema)

    def _batch_rows(self, schema: Schema) -> int:
        if self._spec.batch_rows is not None:
            return self._spec.batch_rows
        return self._bounded_rows(schema, DEFAULT_BATCH_ROWS)

    def _chunk_rows(self, schema: Schema) -> int:
        return self._bounded_rows(schema, _FILTER_ROWS)

    def _bounded_rows(self, schema: Schema, most: int) -> int:
        width = row_bytes(self._task.fragment, self._spec.table_schema, schema)
        return max(1, min(most, int(_BATCH_BYTES / width))) if width else most


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return
