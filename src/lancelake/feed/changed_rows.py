"""Execution of the tasks of a change feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa

from lancelake import errors
from lancelake.data.arrays.batches import Mask, differing
from lancelake.data.column_reader import RowOffsets, project
from lancelake.data.fragment_reader import FragmentReader, MetaColumn, RowMeta, load_deletions
from lancelake.feed import request
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.frozen import computed_once
from lancelake.format.logical_types import described_schema
from lancelake.format.rowids import U64Array
from lancelake.format.schema import Schema
from lancelake.scan.plan import column_widths, row_bytes
from lancelake.scan.request import DEFAULT_BATCH_ROWS
from lancelake.scan.task_rows import Finisher, LiveRows, to_mask

_CHANGE_TYPE, _VERSION, _TIMESTAMP = (field.type for field in request.FEED_FIELDS[1:])


class Emitter:
    """Builds the batches of the feed for one commit."""

    def __init__(self, spec: request.FeedSpec, commit: request.Commit) -> None:
        self._spec = spec
        self._commit = commit
        schema = pa.schema(list(spec.schema)[: len(spec.outputs)])
        self._finish = Finisher(spec.outputs, schema, {})
        self._filter = spec.predicate

    def __call__(
        self, batch: pa.RecordBatch, ids: U64Array, kind: request.ChangeKind
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows that share one kind of change."""
        kinds = pa.array([kind.value], _CHANGE_TYPE).take(pa.array(np.zeros(len(ids), np.int64)))
        yield from self._emit(batch, self._feed_columns(ids, kinds))

    def pairs(
        self, before: pa.RecordBatch, after: pa.RecordBatch, ids: U64Array
    ) -> Iterator[pa.RecordBatch]:
        """Yield updated rows: the preimage followed by the postimage of each."""
        images = [
            (request.ChangeKind.UPDATE_BEFORE, before),
            (request.ChangeKind.UPDATE_AFTER, after),
        ]
        requested = [(kind, rows) for kind, rows in images if kind in self._spec.kinds]
        if len(requested) == 1:
            kind, rows = requested[0]
            yield from self(rows, ids, kind)
            return
        count = len(ids)
        order = pa.array(np.arange(2 * count).reshape(2, count).T.ravel())
        columns = [
            pa.concat_arrays([old, new]).take(order)
            for old, new in zip(before.columns, after.columns, strict=True)
        ]
        rows = pa.RecordBatch.from_arrays(columns, names=before.schema.names)
        kinds = pa.array([kind.value for kind, _ in images], _CHANGE_TYPE)
        repeated = kinds.take(pa.array(np.tile([0, 1], count)))
        yield from self._emit(rows, self._feed_columns(np.repeat(ids, 2), repeated))

    def _feed_columns(self, ids: U64Array, kinds: pa.Array) -> list[pa.Array]:
        ns = self._commit.timestamp_ns
        when = pa.scalar(None if ns is None else ns // 1000, _TIMESTAMP)
        version = pa.scalar(self._commit.version, _VERSION)
        return [pa.array(ids), kinds, pa.repeat(version, len(ids)), pa.repeat(when, len(ids))]

    def _emit(self, rows: pa.RecordBatch, feed: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        if self._filter is not None:
            filtered = rows
            for name, column in zip(request.FEED_NAMES, feed, strict=True):
                filtered = filtered.append_column(name, column)
            mask = pa.array(to_mask(self._filter(filtered)))
            rows, feed = rows.filter(mask), [column.filter(mask) for column in feed]
        if not len(feed[0]):
            return
        columns = self._finish(rows, _no_meta).columns if self._spec.outputs else []
        batch = pa.RecordBatch.from_arrays([*columns, *feed], schema=self._spec.schema)
        step = self._spec.batch_rows or DEFAULT_BATCH_ROWS
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _no_meta(meta: object) -> pa.Array:
    raise LookupError(f"{meta} is not a column of the feed")


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

    def where(self, mask: Mask) -> FragmentRows:
        """Return those rows where the mask is true."""
        return FragmentRows(self.offsets[mask], self.ids[mask], self.last_updated[mask])

    def at(self, places: np.ndarray) -> FragmentRows:
        """Return the rows at these positions, in that order."""
        return FragmentRows(self.offsets[places], self.ids[places], self.last_updated[places])


def live_rows(side: request.Side) -> FragmentRows:
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


def unshared_rows(side: request.Side, others: Sequence[request.Side]) -> FragmentRows:
    """Find the live rows of a fragment that are in none of the other fragments."""
    rows = live_rows(side)
    for other in sorted(others, key=lambda o: not request.has_same_rows(side.fragment, o.fragment)):
        if not len(rows.ids):
            break
        if request.has_same_rows(side.fragment, other.fragment):
            deleted = load_deletions(other.at.files, other.fragment)
            gone = np.frombuffer(deleted.to_array(), dtype=np.uint32)
            rows = rows.where(np.isin(rows.offsets, gone, assume_unique=True))
        else:
            shared = np.isin(rows.ids, live_rows(other).ids, assume_unique=True)
            rows = rows.where(~shared)
    return rows


class SideReader:
    """Reads rows of one fragment in the schema of the last version."""

    def __init__(
        self, side: request.Side, spec: request.FeedSpec, more: tuple[str, ...] = ()
    ) -> None:
        """Read the columns that outputs and filter need, and the additional ones."""
        paths = tuple((name,) for name in dict.fromkeys((*request.needed_columns(spec), *more)))
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
                selected = offsets[place:end] - np.uint64(first)
                yield self._cast(batch).take(pa.array(selected)), place
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
            raise errors.SchemaMismatchError(
                problem, version=version, action=action, column=field.name
            ) from error


_UPDATES = (request.ChangeKind.UPDATE_BEFORE, request.ChangeKind.UPDATE_AFTER)


def run(plan: request.ChangeFeedPlan) -> pa.RecordBatchReader:
    """Stream the rows of a plan."""
    batches = (batch for task in plan.tasks for batch in execute(task))
    return pa.RecordBatchReader.from_batches(plan.schema, batches)


def execute(task: request.ChangeTask) -> Iterator[pa.RecordBatch]:
    """Yield the changes of a task; for an updated row, its preimage and then its postimage."""
    try:
        match task:
            case request.RowsTask():
                yield from _rows(task)
            case request.PairTask():
                yield from _pairs(task)
            case _:
                assert_never(task)
    except errors.CorruptTableError as error:
        raise _explain(task, error) from error
    except errors.LanceTableError as error:
        raise error.at(_sides(task)[0].at.files.root.uri) from error.__cause__


def _rows(task: request.RowsTask) -> Iterator[pa.RecordBatch]:
    rows = unshared_rows(task.side, task.others)
    if not len(rows.ids):
        return
    emitter = Emitter(task.spec, task.commit)
    reader = SideReader(task.side, task.spec)
    for batch, first in reader.stream(rows.offsets):
        ids = rows.ids[first : first + batch.num_rows]
        yield from emitter(batch, ids, task.kind)


def _pairs(task: request.PairTask) -> Iterator[pa.RecordBatch]:
    before, after = live_rows(task.before), live_rows(task.after)
    _, at_before, at_after = np.intersect1d(
        before.ids, after.ids, assume_unique=True, return_indices=True
    )
    old, new = before.at(at_before), after.at(at_after)
    marked = old.last_updated != new.last_updated
    if task.trusts_marks:
        yield from _images(task, old.where(marked), new.where(marked), compared=None)
        old, new = old.where(~marked), new.where(~marked)
        if not task.compares_unmarked:
            return
    elif not task.compares_unmarked:
        old, new = old.where(marked), new.where(marked)
    yield from _images(task, old, new, compared=task.compared)


def _images(
    task: request.PairTask,
    old: FragmentRows,
    new: FragmentRows,
    *,
    compared: tuple[str, ...] | None,
) -> Iterator[pa.RecordBatch]:
    """Read both images of a bounded number of rows at a time, in the order of the newer version.

    Either all rows changed, or only those whose compared columns differ are returned.
    """
    order = np.argsort(new.offsets, kind="stable")
    emitter = Emitter(task.spec, task.commit)
    before, after = (SideReader(s, task.spec, compared or ()) for s in (task.before, task.after))
    step = min(before.chunk_rows, after.chunk_rows)
    for start in range(0, len(order), step):
        part = order[start : start + step]
        was, became = _in_order(before, old.offsets[part]), _in_order(after, new.offsets[part])
        ids = new.ids[part]
        if compared is not None:
            changed = _differs(was, became, compared)
            mask = pa.array(changed)
            was, became, ids = was.filter(mask), became.filter(mask), ids[changed]
        yield from emitter.pairs(was, became, ids)


def _in_order(reader: SideReader, offsets: RowOffsets) -> pa.RecordBatch:
    if bool(np.all(offsets[1:] > offsets[:-1])):
        return reader.take(offsets)
    ascending, places = np.unique(offsets, return_inverse=True)
    return reader.take(ascending).take(pa.array(places))


def _differs(one: pa.RecordBatch, other: pa.RecordBatch, names: tuple[str, ...]) -> Mask:
    differs = np.zeros(one.num_rows, dtype=np.bool_)
    for name in names:
        differs |= differing(one.column(name), other.column(name))
    return differs


def _sides(task: request.ChangeTask) -> tuple[request.Side, ...]:
    match task:
        case request.RowsTask():
            return (task.side, *task.others)
        case request.PairTask():
            return (task.before, task.after)
        case _:
            assert_never(task)


def _explain(task: request.ChangeTask, error: errors.CorruptTableError) -> errors.LanceTableError:
    """Distinguish a file that was cleaned up from a damaged one."""
    for side in _sides(task):
        path = _missing(side)
        if path is not None:
            return errors.VersionNotFoundError(
                f"the changes of version {task.commit.version} need {path} of version "
                f"{side.at.version}, which no longer exists because it was cleaned up",
                table=side.at.files.root.uri,
                version=side.at.version,
                action=f"Start at version {task.commit.version} or later, or request inserts only.",
            )
    return error.at(_sides(task)[0].at.files.root.uri)


def _missing(side: request.Side) -> str | None:
    files, fragment = side.at.files, side.fragment
    places = [files.data_file(file) for file in fragment.files]
    if fragment.deletion_file is not None:
        places.append(files.deletion_file(fragment.id, fragment.deletion_file))
    return next((p.path for p in places if not p.store.exists(p.path)), None)
