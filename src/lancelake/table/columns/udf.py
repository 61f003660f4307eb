"""Columns computed by a user-defined function over batches, with a checkpoint."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from lancelake.data.deletion_files import load_deletions
from lancelake.engine.local import LocalEngine
from lancelake.engine.port import Engine
from lancelake.errors import FunctionError, SchemaMismatchError
from lancelake.format.schema import Schema
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.request import ScanRequest
from lancelake.storage.open import open_store
from lancelake.table.column_task import written_file
from lancelake.table.columns.checkpoint import Checkpoint, source_key

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
            if not open_store(place.root).exists(place.path):
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
            found = getattr(result, "schema", type(result).__name__)
            raise SchemaMismatchError(
                "Output schema of function does not match the expected schema, for "
                f"{where}: expected {_shown(expected)}, got {_shown(found)}",
                expected=_shown(expected),
                found=_shown(found),
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
