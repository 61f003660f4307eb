"""Add or update columns of a single fragment; the caller commits its new metadata."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lancelake.commit.snapshot import Snapshot
from lancelake.data.arrays.batches import retype
from lancelake.data.arrays.conform import Conformer
from lancelake.data.column_file import with_file
from lancelake.data.fragment_reader import META_NAMES, load_deletions
from lancelake.data.schema_check import ensure_fits
from lancelake.engine.port import Engine, LocalEngine
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import storage_schema
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.ids import FieldId, FragmentId
from lancelake.format.schema import Schema
from lancelake.scan.plan import ScanTask
from lancelake.scan.task_rows import LiveRows
from lancelake.table.columns.add import (
    BatchFunction,
    computed_plan,
    engine_for,
    live_batches,
    mapped_plan,
    streamed_files,
    widened,
)
from lancelake.table.columns.backfill import Backfill, ColumnPlan, ColumnTask, column_file
from lancelake.table.columns.join import (
    JoinKey,
    JoinRows,
    Rows,
    ensure_joinable,
    ensure_key,
    match_rows,
    prepared,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WiderFragment:
    """A fragment with additional columns, and the schema of a table with it."""

    fragment: Fragment
    schema: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedFragment:
    """A fragment with new values, the updated fields, and the updated rows by offset."""

    fragment: Fragment
    fields: tuple[FieldId, ...]
    rows: BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatedValues:
    """Values of columns, with those of some rows taken from a join's source."""

    source: JoinRows
    rows: Rows
    fields: Schema
    version: FileVersion

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return storage_schema(self.fields)

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        conform = Conformer(self.fields, self.version)
        first = 0
        for batch in live_batches(scan, self.fields):
            rows = self.rows[first : first + batch.num_rows]
            first += batch.num_rows
            matched = rows >= 0
            if not matched.any():
                yield batch
                continue
            brought = conform(self.source.take(rows[matched]))
            places = np.arange(batch.num_rows)
            places[matched] = batch.num_rows + np.arange(brought.num_rows)
            arrays = [
                pa.concat_arrays([old, retype(new, old.type)]).take(pa.array(places))
                for old, new in zip(batch.columns, brought.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def compute_columns(
    base: Snapshot,
    fragment: Fragment,
    expressions: Mapping[str, str],
    *,
    batch_rows: int | None = None,
) -> WiderFragment:
    """Add columns that SQL computes."""
    chosen = (fragment.id,)
    planned = computed_plan(base, expressions, batch_rows=batch_rows, fragment_ids=chosen)
    return _run(base, fragment, planned, LocalEngine())


def map_columns(base: Snapshot, fragment: Fragment, function: BatchFunction) -> WiderFragment:
    """Add columns that a function computes."""
    planned = mapped_plan(base, function, fragment_ids=(fragment.id,))
    engine = engine_for(function, LocalEngine())
    return _run(base, fragment, planned, engine)


def stream_columns(
    base: Snapshot, fragment: Fragment, reader: pa.RecordBatchReader
) -> WiderFragment:
    """Add the columns of a stream that has a row for each live row."""
    wide = widened(base, reader.schema)
    files = streamed_files(base, wide, reader, (fragment,))
    file = files[fragment.id]
    after = fragment if file is None else with_file(fragment, file)
    return WiderFragment(fragment=after, schema=wide.schema)


def join_columns(
    base: Snapshot, fragment: Fragment, reader: pa.RecordBatchReader, key: JoinKey
) -> WiderFragment:
    """Add columns of data with the same keys."""
    ensure_joinable(base, reader.schema, key)
    with tempfile.TemporaryDirectory(prefix="lancelake-join-") as folder:
        planned = prepared(reader, key, Path(folder)).plan(base, (fragment.id,))
        return _run(base, fragment, planned, LocalEngine())


def update_columns(
    base: Snapshot, fragment: Fragment, reader: pa.RecordBatchReader, key: JoinKey
) -> UpdatedFragment:
    """Update columns with the values of data with the same keys; other rows keep theirs."""
    fields = _ensure_updatable(base, reader.schema, key)
    version = base.manifest.data_version
    with tempfile.TemporaryDirectory(prefix="lancelake-join-") as folder:
        join = prepared(reader, key, Path(folder))
        (scan,) = join.scans(base, (fragment.id,))
        rows = match_rows((scan,), join.source, join.folder).rows(fragment.id)
        values = UpdatedValues(source=join.source, rows=rows, fields=fields, version=version)
        task = ColumnTask(scan=scan, values=values, file=column_file(base, fields))
        file = Backfill(engine=LocalEngine()).write(base, [task])[fragment.id]
    live = LiveRows(load_deletions(base.files, fragment))
    matched = live.offsets_of(np.flatnonzero(rows >= 0).astype(np.uint64))
    return UpdatedFragment(
        fragment=fragment if file is None else with_file(fragment, file),
        fields=() if file is None else file.fields,
        rows=BitMap(matched.astype(np.uint32)),
    )


def _run(base: Snapshot, fragment: Fragment, planned: ColumnPlan, engine: Engine) -> WiderFragment:
    written = Backfill(engine=engine).write(base, planned.tasks)
    file = written.get(FragmentId(fragment.id))
    after = fragment if file is None else with_file(fragment, file)
    return WiderFragment(fragment=after, schema=planned.schema)


def _ensure_updatable(base: Snapshot, data: pa.Schema, key: JoinKey) -> Schema:
    """Return the fields that the data updates."""
    schema = base.manifest.schema
    ensure_key(data, key)
    if key.left not in META_NAMES and schema.find(key.left) is None:
        problem = f"Column {key.left} does not exist in the left side fragment"
        raise InvalidRequestError(problem, column=key.left)
    values = pa.schema([field for field in data if field.name != key.right])
    for name in values.names:
        if name in META_NAMES:
            problem = f"Column {name} is a metadata column and cannot be updated"
            raise InvalidRequestError(problem, column=name)
        if name not in schema.names:
            problem = f"Column {name} in right side fragment does not exist in left side fragment"
            raise InvalidRequestError(problem, column=name)
    chosen = schema.select(tuple(values.names))
    fields = ensure_fits(chosen, values)
    for field in fields.walk():
        if field.is_blob_v1 or field.is_blob_v2:
            msg = f"column {field.name} contains blobs, which cannot be updated in place"
            raise UnsupportedError(msg, column=field.name)
    return chosen if fields == chosen else _refuse_parts(chosen, fields)


def _refuse_parts(chosen: Schema, partial: Schema) -> Schema:
    """Raise an error for structs with missing fields."""
    pairs = zip(chosen.fields, partial.fields, strict=True)
    name = next(whole.name for whole, part in pairs if whole != part)
    problem = f"the data has only some fields of column {name}"
    raise InvalidRequestError(problem, column=name, action="Provide all fields.")
