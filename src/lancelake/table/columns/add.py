"""Adding columns: expressions, constants, functions, null."""

from __future__ import annotations

import dataclasses
import hashlib
import pickle
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lancelake.commit.snapshot import Snapshot
from lancelake.data.fragment_reader import FragmentReader, load_deletions, physical_rows
from lancelake.engine.port import Engine, LocalEngine, Progress
from lancelake.errors import FunctionError, InvalidRequestError, SchemaMismatchError
from lancelake.format import evolution
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.evolution import Widened
from lancelake.format.fragment import DataFile, Fragment, encode
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.schema import EXTENSION_NAME, Schema, encode_schema
from lancelake.scan.execute import execute
from lancelake.scan.live_rows import live_rows
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
    written_file,
)
from lancelake.table.publish import DEFAULT, DEFAULT_CHOICES, CommitChoices, retry_on_newest

_TABLES = (
    "CREATE TABLE IF NOT EXISTS batches "
    "(source TEXT, position INT, result BLOB, PRIMARY KEY (source, position))",
    "CREATE TABLE IF NOT EXISTS fragments (source TEXT PRIMARY KEY, result BLOB)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A SQLite file with results by source, that is by the rows they were computed from.

    Results of batches are kept until their fragment is written; then the entry of the fragment's
    file replaces them.
    """

    path: Path

    def batch(self, source: str, position: int) -> pa.RecordBatch | None:
        """Return the stored result for a batch, if any."""
        query = "SELECT result FROM batches WHERE source = ? AND position = ?"
        result = self._fetch(query, (source, position))
        if result is None:
            return None
        with pa.ipc.open_stream(result) as reader:
            return reader.read_next_batch()

    def keep_batch(self, source: str, position: int, batch: pa.RecordBatch) -> None:
        """Store the result for a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        result = sink.getvalue().to_pybytes()
        with self._changes() as changes:
            changes.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", (source, position, result)
            )

    def fragment(self, source: str) -> bytes | None:
        """Return the stored result of a whole fragment, if any."""
        return self._fetch("SELECT result FROM fragments WHERE source = ?", (source,))

    def keep_fragment(self, source: str, result: bytes) -> None:
        """Store the result of a whole fragment in place of those of its batches."""
        with self._changes() as changes:
            changes.execute("INSERT OR REPLACE INTO fragments VALUES (?, ?)", (source, result))
            changes.execute("DELETE FROM batches WHERE source = ?", (source,))

    def remove(self) -> None:
        """Delete the file."""
        self.path.unlink(missing_ok=True)

    def _fetch(self, query: str, parameters: tuple[object, ...]) -> bytes | None:
        with self._changes() as changes:
            row = changes.execute(query, parameters).fetchone()
        return None if row is None else bytes(row[0])

    @contextmanager
    def _changes(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one thread and a short time."""
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                for table in _TABLES:
                    connection.execute(table)
                yield connection
        except sqlite3.DatabaseError as error:
            problem = f"checkpoint file {self.path} cannot be used: {error}"
            raise InvalidRequestError(problem, action="Use another file.") from error


def source_key(fragment: Fragment, deleted: bytes, added: Schema, batch_rows: int) -> str:
    """Return a key of everything results depend on: rows, columns and batch size."""
    digest = hashlib.sha256()
    rows = Fragment(id=fragment.id, files=fragment.files, physical_rows=fragment.physical_rows)
    digest.update(encode(rows).SerializeToString(deterministic=True))
    digest.update(b"\0" + deleted + b"\0" + str(batch_rows).encode())
    for message in encode_schema(added):
        digest.update(message.SerializeToString(deterministic=True))
    return digest.hexdigest()


DEFAULT_BATCH_ROWS = 1024

Function = Callable[[pa.RecordBatch], Any]
"""Returns a batch, or a value that `as_batch` accepts, with the same number of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFunction:
    """A function, the columns it reads, and its output schema."""

    function: Function
    output_schema: pa.Schema
    request: ScanRequest = dataclasses.field(default_factory=ScanRequest)
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        """Default to small batches: a function may hold several copies of one."""
        if self.request.batch_size is None:
            request = replace(self.request, batch_size=DEFAULT_BATCH_ROWS)
            object.__setattr__(self, "request", request)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedValues:
    """Values that a function computes from a scan."""

    function: BatchFunction
    added: Schema

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.function.output_schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Call the function for each batch without a stored result."""
        checkpoint = self.function.checkpoint
        source = "" if checkpoint is None else self._source(scan)
        first = 0
        for position, batch in enumerate(execute(scan)):
            kept = None if checkpoint is None else checkpoint.batch(source, position)
            if kept is None or kept.num_rows != batch.num_rows:
                kept = self._called(batch, scan, first)
                if checkpoint is not None:
                    checkpoint.keep_batch(source, position, kept)
            yield kept
            first += batch.num_rows

    def kept(self, scan: ScanTask) -> bytes | None:
        """Return the result of an earlier run, if its file still exists."""
        checkpoint = self.function.checkpoint
        result = None if checkpoint is None else checkpoint.fragment(self._source(scan))
        file = None if result is None else written_file(result)
        if file is not None:
            place = scan.spec.files.data_file(file)
            if not place.store.exists(place.path):
                return None
        return result

    def keep(self, scan: ScanTask, result: bytes) -> None:
        """Store the result of a run, if there is a checkpoint."""
        if self.function.checkpoint is not None:
            self.function.checkpoint.keep_fragment(self._source(scan), result)

    def _source(self, scan: ScanTask) -> str:
        """Return the checkpoint key of the rows of a scan."""
        deleted = bytes(load_deletions(scan.spec.files, scan.fragment).serialize())
        rows = self.function.request.batch_size or 0
        return source_key(scan.fragment, deleted, self.added, rows)

    def _called(self, batch: pa.RecordBatch, scan: ScanTask, first: int) -> pa.RecordBatch:
        where = f"rows {first} to {first + batch.num_rows - 1} of fragment {scan.fragment.id}"
        try:
            result = as_batch(self.function.function(batch))
        except Exception as error:
            problem = f"the function failed on {where}: {type(error).__name__}: {error}"
            raise FunctionError(problem, fragment=scan.fragment.id, first_row=first) from error
        expected = self.function.output_schema
        if not isinstance(result, pa.RecordBatch) or not result.schema.equals(expected):
            actual = getattr(result, "schema", type(result).__name__)
            raise SchemaMismatchError(
                "Output schema of function does not match the expected schema, for "
                f"{where}: expected {_shown(expected)}, got {_shown(actual)}",
                expected=_shown(expected),
                found=_shown(actual),
                action="Return batches with the output schema.",
            )
        if result.num_rows != batch.num_rows:
            raise SchemaMismatchError(
                f"the function returned {result.num_rows} rows for {where}, but "
                f"{batch.num_rows} are expected",
                expected=batch.num_rows,
                found=result.num_rows,
                action="Return one row for each input row.",
            )
        return result


def as_batch(result: Any) -> Any:
    """Convert data frames and tables to batches; other values are returned unchanged."""
    if isinstance(result, pa.Table):
        return result.combine_chunks().to_batches()[0] if result.num_rows else _empty(result.schema)
    kind = type(result)
    if kind.__module__.partition(".")[0] == "pandas" and kind.__qualname__ == "DataFrame":
        return pa.RecordBatch.from_pandas(result)
    return result


def engine_for(function: BatchFunction, engine: Engine) -> Engine:
    """Choose an engine: a remote one only if the function can be pickled and has no checkpoint.

    In this process the function is called by one thread at a time, since it may hold state.
    """
    here = LocalEngine(parallelism=1)
    if isinstance(engine, LocalEngine) or function.checkpoint is not None:
        return here
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError):
        return here
    return engine


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)


def _shown(schema: object) -> str:
    if isinstance(schema, pa.Schema):
        return ", ".join(f"{field.name}: {field.type}" for field in schema)
    return str(schema)


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
