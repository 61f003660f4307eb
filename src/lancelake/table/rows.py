"""Deleting and updating rows by a condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import gathered, read_ahead
from lancelake.data.column_file import ColumnFile, WriteTask, sync_names, with_file, write_fragments
from lancelake.data.fragment_reader import MetaColumn
from lancelake.engine.port import Engine, Job, LocalEngine, Progress
from lancelake.errors import CorruptTableError, InvalidRequestError, UnsupportedError, suggestion
from lancelake.expr.bind import BoundExpression, bind
from lancelake.expr.evaluate import Evaluator
from lancelake.expr.predicate import Filter
from lancelake.format.arrow_schema import public_field
from lancelake.format.fragment import Fragment, from_bytes, to_bytes
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import has_blobs
from lancelake.format.operations import Update, UpdateMode
from lancelake.format.row_address import encode_offsets, offset_of
from lancelake.format.schema import Field, Schema
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask, column_widths, row_bytes
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest, expression_schema
from lancelake.scan.task_rows import Mask, ScanColumns
from lancelake.table import publish, row_steps
from lancelake.table.columns.backfill import ColumnTask, written_file
from lancelake.table.operation_record import RowCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A column and the expression of its new value, which is cast to the column's type."""

    column: str
    field_id: FieldId
    expression: BoundExpression
    target: pa.DataType | None

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """Return the new value for each row."""
        return Evaluator(self.expression, target=self.target)(batch)


def bind_assignments(updates: Mapping[str, str], schema: Schema) -> tuple[Assignment, ...]:
    """Validate columns and expressions against a schema."""
    if not updates:
        raise InvalidRequestError("No updates provided", action="Set at least one column.")
    return tuple(_bound(column, text, schema) for column, text in updates.items())


def assigned(batch: pa.RecordBatch, assignments: Sequence[Assignment]) -> pa.RecordBatch:
    """Return a batch with new values; all expressions read the old ones."""
    values = {a.column: a.values(batch) for a in assignments}
    for column, array in values.items():
        position = batch.schema.get_field_index(column)
        field = pa.field(column, array.type, True, batch.schema.field(position).metadata)
        batch = batch.set_column(position, field, array)
    return batch


def _bound(column: str, text: str, schema: Schema) -> Assignment:
    field = next((f for f in schema.fields if f.name == column), None)
    if field is None:
        problem = f"Column {column!r} does not exist in the table"
        advice = suggestion(column, schema.names, "columns")
        raise InvalidRequestError(problem, column=column, action=advice)
    expression = bind(text, schema)
    target = _cast_target(field)
    # An expression that can never be cast, such as non-numeric text to a number, fails here.
    Evaluator(expression, target=target).result_field(column, expression_schema(schema))
    return Assignment(column=column, field_id=field.id, expression=expression, target=target)


def _cast_target(field: Field) -> pa.DataType | None:
    """Return the type to cast to; None if the writer converts values."""
    dtype = public_field(field).type
    if isinstance(dtype, pa.BaseExtensionType) or field.is_json:
        return None
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


_TASK_BYTES = 256 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteRows:
    """Rows read, changed and written to new files; they keep their stable row ids."""

    scans: tuple[ScanTask, ...]
    assignments: tuple[Assignment, ...]
    write: WriteTask
    keeps_row_ids: bool

    @property
    def memory_bytes(self) -> int:
        """Estimated memory of a run."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Write the rows and return their fragments."""
        row_ids: list[pa.Array] = []
        rows = sum(len(scan.rows or ()) for scan in self.scans)
        with closing(read_ahead(self._batches(row_ids), rows=rows)) as batches:
            first = next(batches, None)
            if first is None:
                raise CorruptTableError("the rows to change are not in their fragment")
            reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
            fragments = write_fragments(self.write, reader)
        if self.keeps_row_ids:
            fragments = row_steps.with_row_ids(fragments, row_ids)
        return to_bytes(fragments)

    def _batches(self, row_ids: list[pa.Array]) -> Iterator[pa.RecordBatch]:
        # Each evaluation has a fixed cost, so batches are as large as those of the codec.
        for batch in gathered(self._rows()):
            changed = assigned(batch, self.assignments)
            if self.keeps_row_ids:
                position = changed.schema.get_field_index(MetaColumn.ROW_ID.value)
                row_ids.append(changed.column(position))
                changed = changed.remove_column(position)
            yield changed

    def _rows(self) -> Iterator[pa.RecordBatch]:
        columns = ScanColumns.of(self.scans[0].spec)
        replaced = {assignment.column for assignment in self.assignments}
        for scan in self.scans:
            yield from row_steps.writable(scan, execute(scan, columns), without=replaced)


def rewrite_rows(
    base: Snapshot,
    rows: row_steps.RowsByFragment,
    assignments: Sequence[Assignment],
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> tuple[Fragment, ...]:
    """Rewrite the selected rows and return their uncommitted fragments."""
    keeps_row_ids = base.manifest.has_stable_row_ids
    request = ScanRequest(with_row_id=keeps_row_ids, fragment_ids=tuple(sorted(rows)))
    write = row_steps.row_files(base)
    scans = [scan.matching(rows[scan.fragment.id]) for scan in plan(base, request).tasks]
    tasks = [
        RewriteRows(
            scans=group,
            assignments=tuple(assignments),
            write=write,
            keeps_row_ids=keeps_row_ids,
        )
        for group in _grouped(scans, write.max_rows_per_file)
    ]
    job = Job(description=f"rewrite rows of {base.location.uri}", tasks=tasks, progress=progress)
    return tuple(fragment for result in engine.run(job) for fragment in from_bytes(result))


def _grouped(scans: Sequence[ScanTask], most: int) -> Iterator[tuple[ScanTask, ...]]:
    """Group the scans of fragments until a group fills a file."""
    group: list[ScanTask] = []
    count = 0
    for scan in scans:
        group.append(scan)
        count += len(scan.rows or ())
        if count >= most:
            yield tuple(group)
            group, count = [], 0
    if group:
        yield tuple(group)


_ADDRESS = MetaColumn.ROW_ADDRESS.value
# Additional files per fragment cost every reader, so columns are rewritten only for a clear
# advantage and for more than a few rows.
_ADVANTAGE = 2.0
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedValues:
    """The columns of a fragment with new values at the rows of a portable bitmap."""

    rows: bytes
    assignments: tuple[Assignment, ...]
    schema: pa.Schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of all live rows, in row order."""
        return read_ahead(self._batches(scan))

    def _batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        rows = BitMap.deserialize(self.rows)
        chosen = np.zeros(rows.max() + 1, dtype=np.bool_)
        chosen[np.frombuffer(rows.to_array(), dtype=np.uint32)] = True
        for batch in gathered(execute(scan)):
            addresses = batch.column(batch.schema.get_field_index(_ADDRESS)).to_numpy()
            offsets = offset_of(addresses).astype(np.int64)
            mask = offsets < len(chosen)
            mask[mask] = chosen[offsets[mask]]
            arrays = [self._column(batch, mask, assignment) for assignment in self.assignments]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, batch: pa.RecordBatch, mask: Mask, assignment: Assignment) -> pa.Array:
        old = batch.column(assignment.column)
        count = int(np.count_nonzero(mask))
        if not count:
            return old
        new = assignment.values(batch.filter(pa.array(mask)))
        if count == len(old):
            return new
        places = np.arange(len(old))
        places[mask] = len(old) + np.arange(count)
        return pa.concat_arrays([old, new]).take(pa.array(places))


def can_rewrite_columns(assignments: Sequence[Assignment], schema: Schema) -> bool:
    """Whether values of expressions have the same form as scanned values of the columns."""
    return all(
        a.target is not None and public_field(field).type.equals(a.target) and not has_blobs(field)
        for a, field in zip(assignments, _assigned(assignments, schema), strict=True)
    )


def is_cheaper(
    base: Snapshot, rows: row_steps.RowsByFragment, assignments: Sequence[Assignment]
) -> bool:
    """Whether rewriting the columns for all rows of the fragments writes clearly fewer bytes."""
    schema = base.manifest.schema
    widths = column_widths(schema)
    written = replace(schema, fields=_assigned(assignments, schema))
    read = replace(schema, fields=_needed(assignments, schema))
    by_rows = by_columns = touched = 0.0
    for fragment in base.manifest.fragments:
        if fragment.id in rows:
            size = fragment.physical_rows or 0
            touched += size
            by_rows += 2 * len(rows[fragment.id]) * row_bytes(fragment, widths, schema)
            for columns in (read, written):
                by_columns += size * row_bytes(fragment, widths, columns)
    many = sum(map(len, rows.values())) >= _LEAST_SHARE * touched
    return many and _ADVANTAGE * by_columns < by_rows


def rewrite_columns(
    base: Snapshot,
    rows: row_steps.RowsByFragment,
    assignments: Sequence[Assignment],
    engine: Engine,
    *,
    progress: Progress | None = None,
) -> tuple[Fragment, ...]:
    """Rewrite the assigned columns and return the fragments with the new files."""
    if not rows:
        return ()
    schema = base.manifest.schema
    request = ScanRequest(
        columns=tuple(field.name for field in _needed(assignments, schema)),
        with_row_address=True,
        fragment_ids=tuple(sorted(rows)),
    )
    fields = _assigned(assignments, schema)
    values = pa.schema([public_field(field).with_nullable(True) for field in fields])
    file = ColumnFile(
        root=base.location,
        schema=replace(schema, fields=fields),
        version=base.manifest.data_version,
        casts=True,
        # The table already has such columns.
        newest_readers_only=True,
    )
    tasks = [
        ColumnTask(
            scan=scan,
            values=AssignedValues(
                rows=bytes(rows[scan.fragment.id].serialize()),
                assignments=tuple(assignments),
                schema=values,
            ),
            file=file,
        )
        for scan in plan(base, request).tasks
    ]
    job = Job(description=f"rewrite columns of {base.location.uri}", tasks=tasks, progress=progress)
    made = []
    for task, result in zip(tasks, engine.run(job), strict=True):
        entry = written_file(result)
        made.append(task.scan.fragment if entry is None else with_file(task.scan.fragment, entry))
    sync_names(base.location)
    return tuple(made)


def _assigned(assignments: Sequence[Assignment], schema: Schema) -> tuple[Field, ...]:
    by_name = {field.name: field for field in schema.fields}
    return tuple(by_name[a.column] for a in assignments)


def _needed(assignments: Sequence[Assignment], schema: Schema) -> tuple[Field, ...]:
    """Return the columns that are assigned, or used by an expression."""
    named = {path[0] for a in assignments for path in a.expression.paths}
    named |= {a.column for a in assignments}
    return tuple(field for field in schema.fields if field.name in named)


class Rewriting(Enum):
    """What an update rewrites: the changed rows, or the assigned columns of their fragments."""

    AUTO = "auto"
    """Whichever writes fewer bytes."""

    ROWS = "rewrite_rows"
    COLUMNS = "rewrite_columns"


def update(
    base: Snapshot,
    updates: Mapping[str, str],
    condition: Filter | None = None,
    *,
    rewriting: Rewriting = Rewriting.AUTO,
    engine: Engine | None = None,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    retries: publish.Retries = publish.DEFAULT,
    progress: Progress | None = None,
) -> row_steps.RowsChanged:
    """Set columns and commit; without a condition every row is updated."""
    runs_on = engine or base.location.session.engine or LocalEngine()
    choices = choices.named("UPDATE", base.location)

    def attempt(version: Snapshot) -> row_steps.RowsChanged:
        assignments = bind_assignments(updates, version.manifest.schema)
        _ensure_possible(rewriting, assignments, version)
        rows = row_steps.find_rows(version, condition, runs_on, progress=progress)
        patient = choices.within(retries)
        job = _Rewrite(version, rows, assignments, runs_on, patient, progress)
        by_columns = _by_columns(rewriting, version, rows, assignments)
        return job.columns() if by_columns else job.rows()

    return publish.retry_on_newest(base, attempt, retries)


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """Rows of a version that are updated."""

    base: Snapshot
    old: row_steps.RowsByFragment
    assignments: tuple[Assignment, ...]
    engine: Engine
    choices: publish.CommitChoices
    progress: Progress | None

    def rows(self) -> row_steps.RowsChanged:
        """Write the rows to new fragments, and mark them as deleted in their old ones."""
        change = row_steps.RowChange(
            gone=self.old,
            add=self._rewritten,
            fields=tuple(a.field_id for a in self.assignments),
        )
        return row_steps.commit_rows(self.base, change, self.choices)

    def columns(self) -> row_steps.RowsChanged:
        """Write the columns to new files of their fragments; no row moves."""
        fragments = rewrite_columns(
            self.base, self.old, self.assignments, self.engine, progress=self.progress
        )
        by_id = self.base.manifest.schema.by_id()
        fields = (by_id[a.field_id] for a in self.assignments)
        offsets = {i: bytes(rows.serialize()) for i, rows in self.old.items()}
        is_stable = self.base.manifest.has_stable_row_ids
        operation = Update(
            updated_fragments=fragments,
            fields_modified=tuple(node.id for field in fields for node in field.walk()),
            update_mode=UpdateMode.REWRITE_COLUMNS,
            unknown=encode_offsets(offsets) if is_stable else b"",
        )
        choices = replace(self.choices, work=replace(self.choices.work, rows=self._counts))
        made = publish.publish(self.base, operation, choices)
        return row_steps.RowsChanged(snapshot=made, counts=self._counts)

    def _rewritten(self) -> row_steps.AddedRows:
        fragments = rewrite_rows(
            self.base, self.old, self.assignments, self.engine, progress=self.progress
        )
        return row_steps.AddedRows(fragments=fragments, counts=self._counts)

    @property
    def _counts(self) -> RowCounts:
        return RowCounts(updated=row_steps.count_rows(self.old))


def _ensure_possible(
    rewriting: Rewriting, assignments: Sequence[Assignment], base: Snapshot
) -> None:
    if rewriting is Rewriting.COLUMNS and not can_rewrite_columns(
        assignments, base.manifest.schema
    ):
        columns = ", ".join(a.column for a in assignments)
        problem = f"columns of these types cannot be rewritten separately: {columns}"
        raise UnsupportedError(problem, action="Rewrite the rows.", table=base.location.uri)


def _by_columns(
    rewriting: Rewriting,
    base: Snapshot,
    rows: row_steps.RowsByFragment,
    assignments: Sequence[Assignment],
) -> bool:
    if rewriting is not Rewriting.AUTO:
        return rewriting is Rewriting.COLUMNS
    possible = can_rewrite_columns(assignments, base.manifest.schema)
    return possible and is_cheaper(base, rows, assignments)


def delete(
    base: Snapshot,
    condition: Filter | None,
    *,
    engine: Engine | None = None,
    choices: publish.CommitChoices = publish.DEFAULT_CHOICES,
    retries: publish.Retries = publish.DEFAULT,
    progress: Progress | None = None,
    commits_nothing: bool = True,
) -> row_steps.RowsChanged:
    """Delete rows and commit; None deletes all. Fragments without remaining rows are dropped.

    Without `commits_nothing`, a condition that matches no row creates no version.
    """
    runs_on = engine or base.location.session.engine or LocalEngine()
    choices = choices.named("DELETE", base.location)

    def attempt(version: Snapshot) -> row_steps.RowsChanged:
        rows = row_steps.find_rows(version, condition, runs_on, progress=progress)
        if not rows and not commits_nothing:
            return row_steps.RowsChanged(snapshot=version)
        counts = RowCounts(deleted=row_steps.count_rows(rows))
        change = row_steps.RowChange(
            gone=rows,
            add=lambda: row_steps.AddedRows(counts=counts),
            predicate=row_steps.condition_text(condition),
        )
        return row_steps.commit_rows(version, change, choices.within(retries))

    return publish.retry_on_newest(base, attempt, retries)
