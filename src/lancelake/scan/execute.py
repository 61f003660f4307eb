"""Execution of a scan's task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyroaring import AbstractBitMap, BitMap

from lancelake.data.arrays.batches import joined_up_to
from lancelake.data.column_reader import RowOffsets
from lancelake.data.fragment_reader import META_NAMES, FragmentReader, MetaColumn
from lancelake.errors import InvalidExpressionError, naming
from lancelake.expr.predicate import Predicate
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.row_address import bitmap_of
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanTask, value_bytes
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.scan.task_rows import (
    Finisher,
    LiveRows,
    Mask,
    RowSource,
    ScanColumns,
    SingleFragment,
    at_places,
    kept_from,
    mask_of,
    mask_rows,
    offsets_of,
    to_mask,
    with_blob_values,
)

# Limits of what one fetch reads and returns.
_READ_BYTES = 128 << 20
_RESULT_BYTES = 32 << 20
# Small values are stored in chunks; a whole chunk is read for each value.
_FETCH_BYTES = 8 << 10
_SMALL_VALUE_BYTES = 256
# Fetching a row, or one value of many columns, costs as much as streaming this many bytes.
_ROW_COST_BYTES = 8000
_VALUE_COST_BYTES = 400
# Files since 2.1 are decoded by chunks, whether rows are fetched or streamed: a fetch saves the
# rest of a stream, which takes about as long as fetching one of so many rows.
_ROWS_PER_FETCH = 64
# Beginning to stream costs as much as streaming this many bytes.
_START_BYTES = 512 << 10
# Fewer rows are fetched one by one.
_LEAST_STREAMED = 64


def fetch_cost_bytes(values: Sequence[float], fragment: Fragment) -> float:
    """Return how many bytes could be streamed in the time it takes to fetch one row.

    The values are the bytes per row of each column.
    """
    cost = max(_ROW_COST_BYTES, _VALUE_COST_BYTES * len(values))
    width = sum(values)
    if width and all(file.version.leaves_only for file in fragment.files):
        return min(cost, _ROWS_PER_FETCH * width)
    return cost


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Limits of one fetch: rows that it returns, and either of two that bound what it reads."""

    rows: int
    scattered_rows: int
    """Rows whose chunks may be read wherever they are."""

    span_rows: int
    """Consecutive rows that may be read as a whole."""

    @staticmethod
    def of(values: Sequence[float]) -> FetchLimits:
        """Compute the limits from the bytes per row of each column."""
        width = max(sum(values), 1.0)
        read = sum(v if v >= _SMALL_VALUE_BYTES else _FETCH_BYTES for v in values)
        return FetchLimits(
            rows=max(1, int(_RESULT_BYTES / width)),
            scattered_rows=max(1, int(_READ_BYTES / max(read, 1.0))),
            span_rows=max(1, int(_READ_BYTES / width)),
        )

    def parts(self, offsets: RowOffsets) -> Iterator[RowOffsets]:
        """Split sorted offsets into one part for each fetch."""
        first = 0
        while first < len(offsets):
            end_of_span = offsets[first] + np.uint64(self.span_rows)
            near = int(np.searchsorted(offsets, end_of_span))
            last = min(max(near, first + self.scattered_rows), first + self.rows)
            yield offsets[first:last]
            first = last


@dataclass(frozen=True, slots=True)
class RowRun:
    """Ascending offsets of rows; near ones are cheaper to filter out of a stream than to fetch."""

    offsets: RowOffsets
    are_near: bool


def row_runs(offsets: RowOffsets, width: float, fetch_cost: float) -> Iterator[RowRun]:
    """Divide ascending row offsets into runs to stream and rows to fetch.

    Rows have a `width` in bytes; fetching one row costs as much as reading `fetch_cost` bytes.
    Single rows between two runs are fetched together.
    """
    if len(offsets) < _LEAST_STREAMED:
        if len(offsets):
            yield RowRun(offsets, are_near=False)
        return
    gap = max(fetch_cost, _START_BYTES) / width if width else np.inf
    ends = np.flatnonzero(np.diff(offsets) > gap) + 1
    bounds = np.concatenate([[0], ends, [len(offsets)]])
    starts, stops = bounds[:-1], bounds[1:]
    counts, spans = stops - starts, offsets[stops - 1] - offsets[starts]
    are_near = (counts >= _LEAST_STREAMED) & (counts * fetch_cost > spans * width)
    first = 0
    for place in np.flatnonzero(are_near).tolist():
        start, stop = int(starts[place]), int(stops[place])
        if first < start:
            yield RowRun(offsets[first:start], are_near=False)
        yield RowRun(offsets[start:stop], are_near=True)
        first = stop
    if first < len(offsets):
        yield RowRun(offsets[first:], are_near=False)


_BATCH_BYTES = 32 << 20
# Larger chunks do not fit into the CPU cache; chunks of more rows leave the codec nothing to
# decode in parallel.
_CHUNK_BYTES = 4 << 20
_CHUNK_ROWS = 1 << 16
# Share of live rows above which all rows are evaluated.
_MOST_LIVE = 0.5
# Each column of a chunk has a fixed cost, so many columns need larger chunks.
_CHUNK_COLUMN_BYTES = 8 << 10
# The codec fetches a whole request as fast as it can and keeps it in memory.
_WINDOW_BYTES = 64 << 20
# Each evaluation of a filter has a fixed cost, so several chunks are evaluated at once.
_FILTER_ROWS = 1 << 19


def execute(
    task: ScanTask, columns: ScanColumns | None = None, source: RowSource | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task in order; tasks of one scan can share their `columns`.

    With a `source`, these rows are read in place of those of the task's fragment.
    """
    with _naming(task):
        rows = _TaskRun(task, columns, source).rows()
        yield from with_blob_values(task, _limit(rows, task.row_limit))


def _naming(task: ScanTask) -> naming:
    """Name the table in errors: a task runs later than its plan, or in another process."""
    return naming(task.spec.files.root.uri, task.spec.version)


class RowFetcher:
    """Reads single rows of a task's fragment; the fragment stays open."""

    def __init__(self, task: ScanTask) -> None:
        self._task = task
        self._run = _TaskRun(task)

    def fetch(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at sorted, unique offsets in one batch, including deleted rows."""
        task = self._task
        with _naming(task):
            parts = list(with_blob_values(task, iter([self._run.rows_at(offsets)])))
            return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def count(
    task: ScanTask, columns: ScanColumns | None = None, source: RowSource | None = None
) -> int:
    """Count the rows of a task that its predicate keeps."""
    with _naming(task):
        run = _TaskRun(task, columns, source)
        if task.rows is not None:
            return len(run.matching(task.rows))
        return sum(int(np.count_nonzero(keep)) for _, _, keep in run.kept_rows())


def kept_offsets(
    task: ScanTask, columns: ScanColumns | None = None, source: RowSource | None = None
) -> BitMap:
    """Return the offsets of the rows of a task that its predicate keeps."""
    with _naming(task):
        run = _TaskRun(task, columns, source)
        if task.rows is not None:
            return run.matching(task.rows)
        offsets = BitMap()
        for _, first, keep in run.kept_rows():
            if keep.all():
                offsets.add_range(first, first + len(keep))
            else:
                offsets |= bitmap_of((np.flatnonzero(keep) + first).astype(np.uint32))
        return offsets


class _TaskRun:
    def __init__(
        self,
        task: ScanTask,
        columns: ScanColumns | None = None,
        source: RowSource | None = None,
    ) -> None:
        self._task = task
        self._spec = task.spec
        self._source = source or SingleFragment(task.spec, task.fragment)
        self._finisher = Finisher.of(task.spec)
        self._columns = columns or ScanColumns.of(task.spec)
        self._known_widths: dict[int, list[float]] = {}

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the task."""
        if self._task.rows is not None:
            return self._read_selected(self.matching(self._task.rows, self._task.row_limit))
        return self._read_all() if self._spec.predicate is None else self._read_filtered()

    def matching(self, rows: AbstractBitMap, limit: int | None = None) -> BitMap:
        """Return the live rows among these that match the predicate, if it has to be checked.

        With a limit, only the first ones.
        """
        within = BitMap(rows) & BitMap(range(self._start, self._stop))
        live = within if self._spec.include_deleted_rows else within - self._deleted
        if self._spec.predicate is None or not self._task.recheck:
            return live if limit is None else live[:limit]
        offsets_kept = BitMap()
        for some in self._check(self._spec.predicate, offsets_of(live)):
            offsets_kept |= bitmap_of(some.astype(np.uint32))
            if limit is not None and len(offsets_kept) >= limit:
                return offsets_kept[:limit]
        return offsets_kept

    def _check(self, predicate: Predicate, offsets: RowOffsets) -> Iterator[RowOffsets]:
        """Yield those of some live rows that the predicate keeps, in order."""
        reader = self._source.reader(self._columns.filter)
        step = self._chunk_rows(reader.schema, _FILTER_ROWS)
        for run in row_runs(offsets, *self._fetching(self._columns.filter)):
            if run.are_near:
                start, stop = int(run.offsets[0]), int(run.offsets[-1]) + 1
                wanted = mask_of(run.offsets, start, stop)
                for batch in self._windows(reader, start, stop, step):
                    keep = self._keep(batch, start, wanted[: batch.num_rows])
                    yield kept_from(start, keep)
                    start, wanted = start + batch.num_rows, wanted[batch.num_rows :]
                continue
            for first in range(0, len(run.offsets), step):
                part = run.offsets[first : first + step]
                batch = self._with_meta(predicate, reader.take(part), partial(np.asarray, part))
                yield part[to_mask(predicate(batch))]

    def _read_all(self) -> Iterator[pa.RecordBatch]:
        """Yield all live rows, or the first ones up to the limit."""
        stop, limit = self._stop, self._task.row_limit
        if limit is not None:
            # The codec prefetches the whole request.
            stop = self._live.stop_after(limit, self._start, stop)
        yield from self._live_batches(self._start, stop)

    def _read_filtered(self) -> Iterator[pa.RecordBatch]:
        """Yield the live rows that the predicate keeps."""
        late, density = self._spec.late, self._columns.density
        width, cost = self._fetching(self._columns.late)
        if late is None:
            late = bool(self._columns.late.fields) and not density.is_high(width, cost)
        if not late:
            yield from self._filter_at_once()
            return
        few: list[RowOffsets] = []
        for _, first, keep in self.kept_rows():
            matching = int(np.count_nonzero(keep))
            density.add(len(keep), matching)
            if self._spec.late or matching * cost <= len(keep) * width:
                few.append(kept_from(first, keep))
                if sum(map(len, few)) >= self._output_rows:
                    yield from self._fetch(few)
                    few = []
                continue
            yield from self._fetch(few)
            few = []
            yield from self._live_batches(first, first + len(keep), keep)
        yield from self._fetch(few)

    def _read_selected(self, rows: BitMap) -> Iterator[pa.RecordBatch]:
        """Yield selected rows: fetched if they are few, otherwise filtered from a stream."""
        for run in row_runs(offsets_of(rows), *self._fetching(self._columns.output)):
            if run.are_near:
                yield from joined_up_to(self._pick(run.offsets), self._output_rows)
            else:
                yield from self._fetch([run.offsets])

    def _pick(self, offsets: RowOffsets) -> Iterator[pa.RecordBatch]:
        """Yield rows at ascending offsets out of a stream of all rows between them."""
        reader = self._outputs
        first, stop = int(offsets[0]), int(offsets[-1]) + 1
        chunk = self._chunk_rows(reader.schema, _CHUNK_ROWS)
        for batch in self._windows(reader, first, stop, chunk):
            count = int(np.searchsorted(offsets, np.uint64(first + batch.num_rows)))
            part, offsets = offsets[:count], offsets[count:]
            if count:
                rows = at_places(batch, part - np.uint64(first))
                yield from _slices(self._finish(rows, partial(np.asarray, part)), self._output_rows)
            first += batch.num_rows

    def rows_at(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return single rows."""
        return self._finish(self._outputs.take(offsets), lambda: offsets)

    def kept_rows(
        self, columns: Schema | None = None
    ) -> Iterator[tuple[pa.RecordBatch, int, Mask]]:
        """Yield chunks: the columns read, the offset of the first row, and which rows to keep."""
        reader = self._source.reader(columns or self._columns.filter)
        filter_rows = self._chunk_rows(reader.schema, _FILTER_ROWS)
        first = self._start
        for batch in self._windows(reader, first, self._stop, filter_rows):
            last = first + batch.num_rows
            yield batch, first, self._keep(batch, first, self._live.mask(first, last))
            first = last

    def _filter_at_once(self) -> Iterator[pa.RecordBatch]:
        """Read outputs and filter columns together."""
        for batch, first, keep in self.kept_rows(self._columns.both):
            self._columns.density.add(len(keep), int(np.count_nonzero(keep)))
            if keep.any():
                rows = self._finish(mask_rows(batch, keep), partial(kept_from, first, keep))
                yield from _slices(rows, self._output_rows)

    def _live_batches(
        self, start: int, stop: int, keep: Mask | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the live rows of a range, or those of them to keep."""
        reader = self._outputs
        rows = self._output_rows
        # Large chunks are cheaper to decode per row, and slices are free.
        chunk = self._chunk_rows(reader.schema, _CHUNK_ROWS)
        chunk_rows = rows * max(1, chunk // rows)
        first = start
        for batch in self._windows(reader, start, stop, chunk_rows):
            last = first + batch.num_rows
            mask = self._live.mask(first, last)
            if keep is not None:
                mask_kept = keep[first - start : last - start]
                mask = mask_kept if mask is None else mask & mask_kept
            if mask is None:
                yield from _slices(self._finish(batch, partial(_range, first, last)), rows)
            elif mask.any():
                live = mask_rows(batch, mask)
                yield from _slices(self._finish(live, partial(kept_from, first, mask)), rows)
            first = last

    def _windows(
        self, reader: FragmentReader, start: int, stop: int, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows in order, requesting no more at once than fits into memory."""
        most = self._bounded_rows(reader.schema, stop - start, _WINDOW_BYTES)
        # Each request has a fixed cost, so the last batch of a range gets none of its own.
        step = most if most >= stop - start else batch_rows * max(1, most // batch_rows)
        for first in range(start, stop, max(1, step)):
            last = min(first + step, stop)
            yield from reader.batches(start=first, stop=last, batch_rows=batch_rows)

    def _fetch(self, parts: list[RowOffsets]) -> Iterator[pa.RecordBatch]:
        offsets = np.concatenate(parts) if parts else np.array([], dtype=np.uint64)
        limits = FetchLimits.of(self._widths(self._columns.output))
        for part in limits.parts(offsets):
            yield from _slices(self.rows_at(part), self._output_rows)

    def _fetching(self, schema: Schema) -> tuple[float, float]:
        """Return the width of a row in bytes, and what it costs to fetch one."""
        values = self._widths(schema)
        return sum(values), fetch_cost_bytes(values, self._source.fragment)

    def _keep(self, batch: pa.RecordBatch, first: int, live: Mask | None) -> Mask:
        predicate = self._spec.predicate
        if predicate is None:
            return np.ones(batch.num_rows, dtype=np.bool_) if live is None else live
        offsets = partial(_range, first, first + batch.num_rows)
        rows = self._with_meta(predicate, batch, offsets)
        if live is None:
            return to_mask(predicate(rows))
        try:
            # To copy the live rows is slower than to evaluate some that are deleted.
            if not predicate.needs_datafusion or np.count_nonzero(live) > _MOST_LIVE * len(live):
                return to_mask(predicate(rows)) & live
        except InvalidExpressionError:
            # A deleted value may be why; with a live one, the next evaluation fails, too.
            pass
        keep = np.zeros(batch.num_rows, dtype=np.bool_)
        keep[live] = to_mask(predicate(rows.filter(pa.array(live))))
        return keep

    def _with_meta(
        self, predicate: Predicate, batch: pa.RecordBatch, offsets: Callable[[], RowOffsets]
    ) -> pa.RecordBatch:
        """Add the metadata columns of the predicate."""
        named = {path[0] for path in predicate.paths}
        for name in META_NAMES:
            if name in named and name not in batch.schema.names:
                batch = batch.append_column(name, self._meta_column(MetaColumn(name), offsets()))
        return batch

    def _finish(self, batch: pa.RecordBatch, offsets: Callable[[], RowOffsets]) -> pa.RecordBatch:
        """Build the outputs; offsets are computed only for metadata columns."""
        return self._finisher(batch, lambda meta: self._meta_column(meta, offsets()))

    def _meta_column(self, meta: MetaColumn, offsets: RowOffsets) -> pa.Array:
        ranks = offsets
        if meta is MetaColumn.ROW_OFFSET:
            ranks = LiveRows(self._deleted, self._task.live_before).ranks(offsets)
        column = self._source.meta(meta, offsets, ranks)
        hidden = meta in (MetaColumn.ROW_ID, MetaColumn.ROW_ADDRESS)
        if self._spec.include_deleted_rows and hidden and self._deleted:
            gone = np.isin(offsets, np.frombuffer(self._deleted.to_array(), dtype=np.uint32))
            return pa.array(column.to_numpy(), mask=gone)
        return column

    @computed_once
    def _start(self) -> int:
        return self._task.start

    @computed_once
    def _stop(self) -> int:
        return self._outputs.physical_rows if self._task.stop is None else self._task.stop

    @computed_once
    def _deleted(self) -> BitMap:
        return self._source.deleted

    @computed_once
    def _live(self) -> LiveRows:
        deleted = BitMap() if self._spec.include_deleted_rows else self._deleted
        return LiveRows(deleted, self._task.live_before)

    @computed_once
    def _outputs(self) -> FragmentReader:
        return self._source.reader(self._columns.output)

    @computed_once
    def _output_rows(self) -> int:
        """Rows per batch: as requested, or as many as fit into the byte limit."""
        rows = self._spec.batch_rows or self._bounded_rows(
            self._outputs.schema, DEFAULT_BATCH_ROWS, _BATCH_BYTES
        )
        limit = self._task.row_limit
        return rows if limit is None else max(1, min(rows, limit))

    def _chunk_rows(self, schema: Schema, most: int) -> int:
        columns = len(self._widths(schema))
        limit = min(max(_CHUNK_BYTES, columns * _CHUNK_COLUMN_BYTES), _BATCH_BYTES)
        return self._bounded_rows(schema, most, limit)

    def _bounded_rows(self, schema: Schema, most: int, limit_bytes: int) -> int:
        width = sum(self._widths(schema))
        return max(1, min(most, int(limit_bytes / width))) if width else most

    def _widths(self, schema: Schema) -> list[float]:
        """Return the bytes per row of each column, computed once for a schema of this run."""
        # The run keeps its schemas, so that no other one gets their ids.
        widths = self._known_widths.get(id(schema))
        if widths is None:
            widths = value_bytes(self._source.fragment, self._spec.widths, schema)
            self._known_widths[id(schema)] = widths
        return widths


def _range(first: int, last: int) -> RowOffsets:
    return np.arange(first, last, dtype=np.uint64)


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _limit(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return
