"""Rewrite the assigned columns of fragments into new data files next to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.rebatch import gathered
from lancelake.data.column_file import ColumnFile, sync_names, with_file
from lancelake.data.read_ahead import read_ahead
from lancelake.data.row_meta import MetaColumn
from lancelake.engine.port import Engine, Job, Progress
from lancelake.format.arrow_schema import public_field
from lancelake.format.blobs import has_blobs
from lancelake.format.fragment import Fragment
from lancelake.format.row_address import offset_of
from lancelake.format.schema import Field, Schema
from lancelake.scan.execute import execute
from lancelake.scan.live_rows import Mask
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.row_width import column_widths, row_bytes
from lancelake.table.column_task import ColumnTask, written_file
from lancelake.table.row_steps.find import FoundRows
from lancelake.table.rows.assign import Assignment

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


def is_cheaper(base: Snapshot, rows: FoundRows, assignments: Sequence[Assignment]) -> bool:
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
    rows: FoundRows,
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
