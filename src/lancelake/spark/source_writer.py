"""Rows from executors -> fragments -> one commit, for the plain data source.

Executors write data files and return the fragments as bytes. Nothing is visible before the commit,
and an abort deletes nothing: a commit whose reply was lost may have landed, and files that belong
to no version are the business of cleanup.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lancelake.clock import SystemIds
from lancelake.data.fragment_writer import write_fragments
from lancelake.data.write_task import MAX_BYTES_PER_FILE, MAX_ROWS_PER_FILE, WriteTask
from lancelake.errors import TableNotFoundError
from lancelake.format import file_version
from lancelake.format import fragment as fragments
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.operations import Append, Overwrite
from lancelake.format.schema import Schema
from lancelake.proto import table_pb2
from lancelake.spark.conform import Conformer
from lancelake.spark.file_versions import suitable
from lancelake.spark.options import TableOptions
from lancelake.spark.types import arrow_schema
from lancelake.table.open import AtVersion, Latest, OnBranch, open_snapshot
from lancelake.table.publish import (
    CommitChoices,
    new_transaction,
    publish,
    publish_first,
    with_message,
)
from lancelake.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one task wrote: its fragments, as the format encodes them."""

    fragments: tuple[bytes, ...]


class LanceWriter(DataSourceArrowWriter):
    """Appends to a table, or replaces its rows; creates the table when there is none."""

    def __init__(
        self, task: WriteTask, read_version: int | None, choices: CommitChoices, *, overwrite: bool
    ) -> None:
        self._task = task
        self._read_version = read_version
        self._choices = choices
        self._overwrite = overwrite

    @staticmethod
    def prepare(schema: StructType, options: TableOptions, *, overwrite: bool) -> LanceWriter:
        """Look at the table as it is, and decide how to write."""
        base = existing(options)
        task = write_task(schema, options, base, overwrite=overwrite)
        is_new = base is None
        choices = CommitChoices(
            properties=with_message({}, options.get("userMetadata")),
            enable_stable_row_ids=is_new and options.flag("stableRowIds", default=True),
            data_version=task.file_version if is_new or overwrite else None,
        )
        version = None if base is None else base.version
        return LanceWriter(task, version, choices, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        return Written(write_rows(self._task, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the rows of all tasks visible at once."""
        written = [m for m in messages if isinstance(m, Written)]
        rows = decode_fragments(data for message in written for data in message.fragments)
        commit_rows(self._task, rows, self._read_version, self._choices, overwrite=self._overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Leave everything as it is."""


def existing(options: TableOptions) -> Snapshot | None:
    """Open the newest version of the table or of its branch; None when there is no table."""
    branch = options.get("branch")
    try:
        wanted = Latest() if branch is None else OnBranch(branch)
        return open_snapshot(options.location, wanted)
    except TableNotFoundError:
        return None


def write_task(
    schema: StructType, options: TableOptions, base: Snapshot | None, *, overwrite: bool
) -> WriteTask:
    """Return what every executor is asked to do."""
    chosen = options.get("dataStorageVersion")
    version = None if chosen is None else file_version.from_name(chosen)
    appends = base is not None and not overwrite
    own = from_arrow(arrow_schema(schema))
    return WriteTask(
        root=options.location if base is None else base.location,
        schema=base.manifest.schema if base is not None and appends else own,
        file_version=_version(own, base, version, appends=appends),
        max_rows_per_file=options.whole("maxRowsPerFile") or MAX_ROWS_PER_FILE,
        max_bytes_per_file=options.whole("maxBytesPerFile") or MAX_BYTES_PER_FILE,
        casts=True,
    )


def write_rows(task: WriteTask, batches: Iterator[pa.RecordBatch]) -> tuple[bytes, ...]:
    """Write batches as Spark hands them over; return the fragments as bytes."""
    first = next(batches, None)
    if first is None:
        return ()
    target = stored_schema(first.schema)
    conform = Conformer(target)

    def rows() -> Iterator[pa.RecordBatch]:
        yield conform(first)
        yield from (conform(batch) for batch in batches)

    reader = pa.RecordBatchReader.from_batches(target, rows())
    written = write_fragments(task, reader, ids=SystemIds())
    return tuple(fragments.encode(f).SerializeToString() for f in written)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of Spark's batches with every time in UTC, as tables keep them."""
    return pa.schema([field.with_type(_in_utc(field.type)) for field in schema])


def decode_fragments(encoded: Iterator[bytes]) -> tuple[Fragment, ...]:
    """Read fragments that tasks returned."""
    messages = (table_pb2.DataFragment.FromString(data) for data in encoded)
    return tuple(fragments.decode(message) for message in messages)


def commit_rows(
    task: WriteTask,
    rows: tuple[Fragment, ...],
    read_version: int | None,
    choices: CommitChoices,
    *,
    overwrite: bool,
) -> Snapshot | None:
    """Commit fragments to the table as it was when the write began; none make no version."""
    if read_version is None:
        operation = Overwrite(fragments=rows, schema=task.schema)
        return publish_first(task.root, new_transaction(operation, 0, choices), choices)
    base = open_snapshot(task.root, AtVersion(read_version))
    if overwrite:
        change: Append | Overwrite = Overwrite(fragments=rows, schema=task.schema)
    elif not rows:
        return None
    else:
        change = Append(fragments=rows)
    return publish(base, new_transaction(change, read_version, choices), choices)


def _version(
    schema: Schema, base: Snapshot | None, chosen: FileVersion | None, *, appends: bool
) -> FileVersion:
    if base is not None and (appends or chosen is None):
        return base.manifest.data_version
    return chosen or suitable(schema)


def _in_utc(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return pa.timestamp(dtype.unit, "UTC")
    if pa.types.is_struct(dtype):
        return pa.struct([f.with_type(_in_utc(f.type)) for f in dtype])
    if pa.types.is_map(dtype):
        key, item = dtype.key_field, dtype.item_field
        return pa.map_(key.with_type(_in_utc(key.type)), item.with_type(_in_utc(item.type)))
    if pa.types.is_list(dtype):
        item = dtype.value_field
        return pa.list_(item.with_type(_in_utc(item.type)))
    return dtype
