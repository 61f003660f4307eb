"""A scan task -> record batches; the same on a laptop and on an executor."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.column_reader import RowOffsets
from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.data.projection import project
from lancelake.data.row_meta import META_NAMES, MetaColumn, RowMeta
from lancelake.errors import LanceTableError
from lancelake.expr.row_filter import RowFilter
from lancelake.format.schema import Schema
from lancelake.scan.finish import Finisher, needed_paths
from lancelake.scan.plan import ScanTask
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.scan.rows import LiveRows, Mask
from lancelake.scan.width import row_bytes

Paths = tuple[tuple[str, ...], ...]
Positions = npt.NDArray[np.intp]

_BATCH_BYTES = 32 << 20
# A chunk of more bytes falls out of the processor's cache before it is used.
_CHUNK_BYTES = 4 << 20
_CHUNK_ROWS = 1 << 18
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


def fetch(task: ScanTask, offsets: RowOffsets) -> pa.RecordBatch:
    """Return the rows at these offsets, which ascend without repeats; deleted ones too."""
    try:
        return _TaskRun(task).rows_at(offsets)
    except LanceTableError as error:
        raise error.at(task.spec.files.root.uri, task.spec.version) from error.__cause__


def count(task: ScanTask) -> int:
    """Count the rows of a task that its predicate keeps."""
    try:
        return sum(len(kept) for _, _, kept in _TaskRun(task).kept_rows())
    except LanceTableError as error:
        raise error.at(task.spec.files.root.uri, task.spec.version) from error.__cause__


class _TaskRun:
    def __init__(self, task: ScanTask) -> None:
        self._task = task
        self._spec = task.spec
        self._finisher = Finisher.of(task.spec)
        self._output_paths = needed_paths(task.spec.outputs)

    def unfiltered(self) -> Iterator[pa.RecordBatch]:
        """Yield all live rows."""
        yield from self._live_batches(self._start, self._stop)

    def filtered(self) -> Iterator[pa.RecordBatch]:
        """Yield the live rows that the predicate keeps."""
        if self._spec.late is False or not self._late_columns.fields:
            yield from self._filtered_at_once()
            return
        width = row_bytes(self._task.fragment, self._spec.widths, self._late_columns)
        few: list[RowOffsets] = []
        for read, offsets, kept in self.kept_rows():
            if self._spec.late or len(kept) * _ROW_FETCH_BYTES < read.num_rows * width:
                few.append(offsets[kept])
                if sum(map(len, few)) >= self._output_rows:
                    yield from self._fetched(few)
                    few = []
                continue
            yield from self._fetched(few)
            few = []
            first, last = int(offsets[0]), int(offsets[-1]) + 1
            keep = np.zeros(last - first, dtype=np.bool_)
            keep[kept] = True
            yield from self._live_batches(first, last, keep)
        yield from self._fetched(few)

    def rows_at(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return single rows."""
        return self._finish(self._outputs.take(offsets), offsets)

    def kept_rows(
        self, paths: Paths | None = None
    ) -> Iterator[tuple[pa.RecordBatch, RowOffsets, Positions]]:
        """Yield chunks with the columns read, their offsets and the positions to keep."""
        reader = self._reader(self._filter_paths if paths is None else paths)
        chunk_rows = self._bounded_rows(reader.schema, _CHUNK_ROWS, _CHUNK_BYTES)
        first = self._start
        for batch in reader.batches(start=first, stop=self._stop, batch_rows=chunk_rows):
            last = first + batch.num_rows
            offsets = np.arange(first, last, dtype=np.uint64)
            keep = self._keep(batch, offsets, self._live.mask(first, last))
            yield batch, offsets, np.flatnonzero(keep)
            first = last

    def _filtered_at_once(self) -> Iterator[pa.RecordBatch]:
        """Read outputs and filter columns together."""
        paths = self._output_paths + self._filter_paths
        for batch, offsets, kept in self.kept_rows(paths):
            if len(kept):
                rows = self._finish(batch.take(pa.array(kept)), offsets[kept])
                yield from _slices(rows, self._output_rows)

    def _live_batches(
        self, start: int, stop: int, keep: Mask | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of a range, or those of them to keep."""
        reader = self._outputs
        rows = self._output_rows
        # Large chunks cost less per row to decode; slices of them cost nothing.
        chunk = self._bounded_rows(reader.schema, _CHUNK_ROWS, _CHUNK_BYTES)
        chunk_rows = rows * max(1, chunk // rows)
        first = start
        for batch in reader.batches(start=start, stop=stop, batch_rows=chunk_rows):
            last = first + batch.num_rows
            mask = self._live.mask(first, last)
            if keep is not None:
                kept = keep[first - start : last - start]
                mask = kept if mask is None else mask & kept
            offsets = np.arange(first, last, dtype=np.uint64)
            if mask is None:
                yield from _slices(self._finish(batch, offsets), rows)
            elif mask.any():
                live = batch.filter(pa.array(mask))
                yield from _slices(self._finish(live, offsets[mask]), rows)
            first = last

    def _fetched(self, parts: list[RowOffsets]) -> Iterator[pa.RecordBatch]:
        offsets = np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
        if len(offsets):
            yield from _slices(self.rows_at(offsets), self._output_rows)

    def _keep(self, batch: pa.RecordBatch, offsets: RowOffsets, live: Mask | None) -> Mask:
        if self._row_filter is None:
            return np.ones(batch.num_rows, dtype=np.bool_) if live is None else live
        mask = self._row_filter(self._with_meta(batch, offsets))
        keep: Mask = mask.fill_null(False).to_numpy(zero_copy_only=False)
        return keep if live is None else keep & live

    def _with_meta(self, batch: pa.RecordBatch, offsets: RowOffsets) -> pa.RecordBatch:
        """Add the meta columns that the predicate looks at."""
        condition = self._spec.predicate
        named = {path[0] for path in condition.paths} if condition is not None else set()
        for name in META_NAMES:
            if name in named and name not in batch.schema.names:
                column = self._meta_column(MetaColumn(name), offsets)
                batch = batch.append_column(name, column)
        return batch

    def _finish(self, batch: pa.RecordBatch, offsets: RowOffsets) -> pa.RecordBatch:
        return self._finisher(batch, lambda meta: self._meta_column(meta, offsets))

    def _meta_column(self, meta: MetaColumn, offsets: RowOffsets) -> pa.Array:
        column = self._meta.column(meta, offsets, self._live.ranks(offsets))
        if self._spec.include_deleted_rows and meta is MetaColumn.ROW_ID and self._deleted:
            gone = np.isin(offsets, np.frombuffer(self._deleted.to_array(), dtype=np.uint32))
            return pa.array(column.to_numpy(), mask=gone)
        return column

    @cached_property
    def _start(self) -> int:
        return self._task.start

    @cached_property
    def _stop(self) -> int:
        return self._outputs.physical_rows if self._task.stop is None else self._task.stop

    @cached_property
    def _deleted(self) -> BitMap:
        return load_deletions(self._spec.files, self._task.fragment)

    @cached_property
    def _live(self) -> LiveRows:
        deleted = BitMap() if self._spec.include_deleted_rows else self._deleted
        return LiveRows(deleted, self._task.live_before)

    @cached_property
    def _meta(self) -> RowMeta:
        return RowMeta(
            self._spec.files,
            self._task.fragment,
            self._outputs.physical_rows,
            self._spec.has_stable_row_ids,
        )

    @cached_property
    def _row_filter(self) -> RowFilter | None:
        return None if self._spec.predicate is None else RowFilter(self._spec.predicate)

    @cached_property
    def _filter_paths(self) -> Paths:
        return () if self._spec.predicate is None else self._spec.predicate.paths

    @cached_property
    def _late_columns(self) -> Schema:
        """Columns that only the outputs need."""
        paths = tuple(p for p in self._output_paths if p not in self._filter_paths)
        return project(self._spec.table_schema, paths)

    @cached_property
    def _outputs(self) -> FragmentReader:
        return self._reader(self._output_paths)

    @cached_property
    def _output_rows(self) -> int:
        """Rows per batch: as asked, or as many as fit in a batch of bounded size."""
        rows = self._spec.batch_rows or self._bounded_rows(
            self._outputs.schema, DEFAULT_BATCH_ROWS, _BATCH_BYTES
        )
        limit = self._task.row_limit
        return rows if limit is None else max(1, min(rows, limit))

    def _reader(self, paths: Paths) -> FragmentReader:
        spec = self._spec
        schema = project(spec.table_schema, paths)
        return FragmentReader(spec.files, spec.manifest_at, self._task.fragment, schema)

    def _bounded_rows(self, schema: Schema, most: int, limit_bytes: int) -> int:
        width = row_bytes(self._task.fragment, self._spec.widths, schema)
        return max(1, min(most, int(limit_bytes / width))) if width else most


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


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
