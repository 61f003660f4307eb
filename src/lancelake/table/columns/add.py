"""Adding columns: expressions, constants, functions, null."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.deletion_files import load_deletions
from lancelake.data.fragment_reader import FragmentReader
from lancelake.engine.port import Engine, LocalEngine, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError
from lancelake.format import evolution
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.evolution import Widened
from lancelake.format.extension_names import EXTENSION_NAME
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.schema import Schema
from lancelake.scan.execute import execute
from lancelake.scan.live_rows import live_rows, physical_rows
from lancelake.scan.plan import ScanTask, row_bytes
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.task_rows import LiveRows, ScanColumns
from lancelake.table.columns.backfill import (
    Backfill,
    ColumnPlan,
    ColumnTask,
    Syncing,
    column_file,
    default_engine,
    publish_columns,
)
from lancelake.table.columns.user_functions import BatchFunction, MappedValues, engine_for
from lancelake.table.publish import DEFAULT, DEFAULT_CHOICES, CommitChoices, retry_on_newest

_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 8 << 20


def live_batches(
    scan: ScanTask, schema: Schema, *, batch_bytes: int = _BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield the fields of `schema` for the rows of a scan's fragment that are not deleted."""
    spec = scan.spec
    reader = FragmentReader(spec.files, spec.manifest_at, scan.fragment, schema)
    live = LiveRows(load_deletions(spec.files, scan.fragment))
    rows = batch_rows(scan, schema, batch_bytes)
    first = 0
    for batch in reader.batches(start=0, stop=reader.physical_rows, batch_rows=rows):
        mask = live.mask(first, first + batch.num_rows)
        first += batch.num_rows
        if mask is None:
            yield batch
        elif mask.any():
            yield batch.filter(pa.array(mask))


def batch_rows(
    scan: ScanTask, schema: Schema, limit_bytes: int = _BATCH_BYTES, *, most: int = _BATCH_ROWS
) -> int:
    """Return how many rows to read at once."""
    width = row_bytes(scan.fragment, scan.spec.widths, schema)
    return max(1, min(most, int(limit_bytes / width))) if width else most


# Every evaluation of an expression has a fixed cost, however few rows it is for.
_EVALUATED_ROWS = 1 << 19
_NULL = re.compile(r"\s*cast\s*\(\s*null\s+as\s+[\w\s(),<>]+\)\s*", re.IGNORECASE)
_EXTENSION = EXTENSION_NAME.rpartition(":")[0].encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedValues:
    """Values that a scan itself computes."""

    schema: pa.Schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the scan, by default as large as memory allows."""
        if scan.spec.batch_rows is None:
            rows = batch_rows(scan, ScanColumns.of(scan.spec).output, most=_EVALUATED_ROWS)
            scan = replace(scan, spec=replace(scan.spec, batch_rows=rows))
        return execute(scan)


def add_computed_columns(
    base: Snapshot,
    expressions: Mapping[str, str],
    *,
    batch_rows: int | None = None,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> Snapshot:
    """Add columns by name with the values of SQL expressions over the others, and commit.

    If all of them are casts of NULL, no data file is written.
    """
    if expressions and all(_NULL.fullmatch(text) for text in expressions.values()):
        schema = plan(base, ScanRequest(columns=FrozenMap(dict(expressions)))).schema
        nulls = pa.schema([_plain(field).with_nullable(True) for field in schema])
        return add_null_columns(base, nulls, choices=choices)
    backfill = Backfill(engine=engine or default_engine(base), choices=choices, progress=progress)
    return backfill.run(base, lambda at: computed_plan(at, expressions, batch_rows=batch_rows))


def computed_plan(
    base: Snapshot,
    expressions: Mapping[str, str],
    *,
    batch_rows: int | None = None,
    fragment_ids: tuple[FragmentId, ...] | None = None,
) -> ColumnPlan:
    """Plan columns that SQL computes."""
    request = ScanRequest(
        columns=FrozenMap(dict(expressions)), batch_size=batch_rows, fragment_ids=fragment_ids
    )
    scan = plan(base, request)
    schema = pa.schema([_plain(field) for field in scan.schema])
    wide = widened(base, schema)
    if not expressions:
        return ColumnPlan(schema=wide.schema, tasks=())
    file = column_file(base, wide.added)
    file.ensure_possible(schema)
    values = ScannedValues(schema=schema)
    tasks = [ColumnTask(scan=task, values=values, file=file) for task in scan.tasks]
    return ColumnPlan(schema=wide.schema, tasks=tasks)


def add_mapped_columns(
    base: Snapshot,
    function: BatchFunction,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
) -> Snapshot:
    """Add columns computed by a function from batches of the others, and commit.

    With a checkpoint, results computed before an error or a kill are not computed again.
    """
    backfill = Backfill(
        engine=engine_for(function, engine or base.location.session.engine or LocalEngine()),
        choices=choices,
        progress=progress,
    )
    made = backfill.run(base, lambda at: mapped_plan(at, function))
    if function.checkpoint is not None:
        function.checkpoint.remove()
    return made


def mapped_plan(
    base: Snapshot,
    function: BatchFunction,
    *,
    fragment_ids: tuple[FragmentId, ...] | None = None,
) -> ColumnPlan:
    """Plan columns that a function computes."""
    wide = widened(base, function.output_schema)
    file = column_file(base, wide.added)
    file.ensure_possible(function.output_schema)
    request = replace(function.request, fragment_ids=fragment_ids)
    values = MappedValues(function=function, added=wide.added)
    keeper = None if function.checkpoint is None else values
    tasks = [
        ColumnTask(scan=task, values=values, file=file, keeper=keeper)
        for task in plan(base, request).tasks
    ]
    return ColumnPlan(schema=wide.schema, tasks=tasks)


def add_streamed_columns(
    base: Snapshot, reader: pa.RecordBatchReader, *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Add the columns of a stream with one row for each row of the table, in table order."""
    wide = widened(base, reader.schema)
    files = streamed_files(base, wide, reader, base.manifest.fragments)
    return publish_columns(base, wide.schema, files, choices)


def streamed_files(
    base: Snapshot,
    wide: Widened,
    reader: pa.RecordBatchReader,
    fragments: Iterable[Fragment],
) -> dict[FragmentId, DataFile | None]:
    """Write the columns of a stream, fragment by fragment, in bounded memory."""
    file = column_file(base, wide.added)
    file.ensure_possible(reader.schema)
    source = base
    rows = _Rows(reader)
    files: dict[FragmentId, DataFile | None] = {}
    with Syncing(base.location) as syncing:
        for fragment in fragments:
            count = live_rows(source.files, source.manifest_at, fragment)
            files[fragment.id] = file.write(
                rows.next(count),
                reader.schema,
                deleted=load_deletions(source.files, fragment),
                physical_rows=physical_rows(source.files, source.manifest_at, fragment),
            )
            syncing.add(files[fragment.id])
        rows.ensure_ended()
    return files


def add_null_columns(
    base: Snapshot, schema: pa.Schema, *, choices: CommitChoices = DEFAULT_CHOICES
) -> Snapshot:
    """Add columns that are null in every row; no data file is written."""
    for field in schema:
        if not field.nullable:
            msg = f"All-null columns must be nullable, but field {field.name!r} is not"
            raise InvalidRequestError(msg, column=field.name)

    def attempt(at: Snapshot) -> Snapshot:
        return publish_columns(at, widened(at, schema).schema, {}, choices)

    return retry_on_newest(base, attempt, DEFAULT)


def widened(base: Snapshot, new: pa.Schema) -> Widened:
    """Return the schema of a version with additional columns."""
    manifest = base.manifest
    return evolution.widen(
        manifest.schema,
        from_arrow(new),
        first_id=evolution.first_free_id(manifest.schema, manifest.fragments),
        version=manifest.data_version,
    )


class _Rows:
    """A stream that is consumed in parts of a given number of rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._rest: pa.RecordBatch | None = None

    def next(self, count: int) -> Iterator[pa.RecordBatch]:
        """Yield the next rows, or fewer if the stream ends."""
        while count:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                return
            part, rest = batch.slice(0, count), batch.slice(count)
            self._rest = rest if rest.num_rows else None
            count -= part.num_rows
            yield part

    def ensure_ended(self) -> None:
        """Raise an error if there are rows left."""
        left = chain([] if self._rest is None else [self._rest], self._batches)
        if any(batch.num_rows for batch in left):
            problem = "Stream produced more values than expected for dataset"
            raise SchemaMismatchError(problem, action="Provide one row for each row of the table.")


def _plain(field: pa.Field) -> pa.Field:
    """Remove the metadata of the column that an expression refers to, keeping its type."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k.startswith(_EXTENSION)}
    return field.remove_metadata().with_metadata(metadata or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantValues:
    """One row, repeated for every live row of a fragment."""

    row: pa.RecordBatch

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.row.schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the row as often as the fragment has live rows."""
        spec = scan.spec
        count = live_rows(spec.files, spec.manifest_at, scan.fragment)
        for first in range(0, count, _BATCH_ROWS):
            rows = min(_BATCH_ROWS, count - first)
            yield self.row.take(pa.array(np.zeros(rows, np.int64)))


def add_constant_columns(
    base: Snapshot,
    row: pa.RecordBatch,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
) -> Snapshot:
    """Add the columns of a batch of one row, with its values in every row, and commit."""

    def planned(at: Snapshot) -> ColumnPlan:
        wide = widened(at, row.schema)
        file = column_file(at, wide.added)
        file.ensure_possible(row.schema)
        values = ConstantValues(row=row)
        tasks = [
            ColumnTask(scan=scan, values=values, file=file)
            for scan in plan(at, ScanRequest(columns=())).tasks
        ]
        return ColumnPlan(schema=wide.schema, tasks=tasks)

    backfill = Backfill(engine=engine or default_engine(base), choices=choices)
    return backfill.run(base, planned)
