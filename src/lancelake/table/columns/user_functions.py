"""Columns computed by functions of the user, batch by batch, with checkpoints."""

from __future__ import annotations

import hashlib
import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lancelake.data.deletion_files import load_deletions
from lancelake.engine.port import Engine, LocalEngine
from lancelake.errors import FunctionError, InvalidRequestError, SchemaMismatchError
from lancelake.format import fragment as fragments
from lancelake.format import schema_codec
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.request import ScanRequest
from lancelake.table.columns.backfill import written_file

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
    digest.update(fragments.encode(rows).SerializeToString(deterministic=True))
    digest.update(b"\0" + deleted + b"\0" + str(batch_rows).encode())
    for message in schema_codec.encode(added):
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
    request: ScanRequest = field(default_factory=ScanRequest)
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
