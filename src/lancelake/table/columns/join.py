"""Columns joined from other data by key."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.commit.snapshot import Snapshot
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.data.fragment_reader import META_NAMES, FragmentReader
from lancelake.engine.port import Engine, Progress
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError, suggestion
from lancelake.expr.literals import plain_storage
from lancelake.format.arrow_schema import from_arrow, storage_schema
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.ids import MAX_ROWS, FragmentId
from lancelake.format.schema import Schema
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.table.columns.add import widened
from lancelake.table.columns.backfill import (
    Backfill,
    ColumnPlan,
    ColumnTask,
    column_file,
    default_engine,
)
from lancelake.table.publish import DEFAULT_CHOICES, CommitChoices

MEMORY_BYTES = 256 << 20
_KEYS_AT_ONCE = 8 << 20
_KEY = "key"

Rows = npt.NDArray[np.int64]
"""Row numbers of the source; -1 without a match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRows:
    """Keys and values in memory."""

    keys: pa.Array
    values: pa.RecordBatch

    @property
    def schema(self) -> pa.Schema:
        """Schema of the values."""
        return self.values.schema

    @property
    def row_bytes(self) -> int:
        """Estimated bytes of the values of a row."""
        return max(1, int(self.values.nbytes) // max(1, int(self.values.num_rows)))

    def key_chunks(self) -> Iterator[pa.Array]:
        """Yield the keys in order."""
        yield self.keys

    def take(self, rows: Rows) -> pa.RecordBatch:
        """Return the values of rows, in the order requested; null where there is no row."""
        return self.values.take(pa.array(rows, mask=rows < 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Keys and values in a data file outside the table."""

    files: TableFiles
    fragment: Fragment
    fields: Schema
    row_bytes: int

    @property
    def schema(self) -> pa.Schema:
        """Schema of the values."""
        return storage_schema(self._values)

    def key_chunks(self) -> Iterator[pa.Array]:
        """Yield the keys in order."""
        reader = self._reader(replace(self.fields, fields=self.fields.fields[:1]))
        rows = reader.physical_rows
        for batch in reader.batches(start=0, stop=rows, batch_rows=_KEYS_AT_ONCE):
            yield batch.column(0)

    def take(self, rows: Rows) -> pa.RecordBatch:
        """Return the values of rows, in the order requested; null where there is no row."""
        reader = self._reader(self._values)
        unique, places = np.unique(rows[rows >= 0], return_inverse=True)
        if not len(unique):
            arrays = [pa.nulls(len(rows), field.type) for field in self.schema]
            return pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        first, last = int(unique[0]), int(unique[-1]) + 1
        if last - first == len(unique):
            parts = reader.batches(start=first, stop=last, batch_rows=last - first)
            values = pa.concat_batches(list(parts))
        else:
            values = reader.take(unique.astype(np.uint64))
        if len(unique) == len(rows) and bool(np.all(np.diff(rows) > 0)):
            return values
        order = np.full(len(rows), -1, dtype=np.int64)
        order[rows >= 0] = places
        return values.take(pa.array(order, mask=order < 0))

    @property
    def _values(self) -> Schema:
        return replace(self.fields, fields=self.fields.fields[1:])

    def _reader(self, schema: Schema) -> FragmentReader:
        nowhere = FileAt(root=self.files.root, path="")
        return FragmentReader(self.files, nowhere, self.fragment, schema)


JoinRows = MemoryRows | FileRows


def join_rows(
    reader: pa.RecordBatchReader,
    key: str,
    *,
    scratch: Location,
    memory_bytes: int = MEMORY_BYTES,
) -> JoinRows:
    """Read all rows of a stream; if they are too many they are written to a file in `scratch`."""
    schema = _ordered(reader.schema, key)
    batches = (_with_key_first(batch, key, schema) for batch in reader)
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_bytes += batch.nbytes
        if held_bytes > memory_bytes:
            return _in_file(chain(_drained(held), batches), schema, scratch)
    whole = pa.Table.from_batches(held, schema=schema).combine_chunks()
    return MemoryRows(
        keys=whole.column(0).combine_chunks(), values=_one_batch(whole.remove_column(0))
    )


def _in_file(batches: Iterator[pa.RecordBatch], schema: pa.Schema, scratch: Location) -> FileRows:
    fields = from_arrow(schema)
    for field in fields.walk():
        if field.is_blob_v1 or field.is_blob_v2:
            msg = (
                f"column {field.name} contains blobs, and has too many rows to be joined in memory"
            )
            raise UnsupportedError(msg, column=field.name, action="Join fewer rows at a time.")
    task = WriteTask(
        root=scratch,
        schema=fields,
        file_version=FileVersion.V2_2,
        max_rows_per_file=MAX_ROWS,
        newest_readers_only=True,
    )
    stream = pa.RecordBatchReader.from_batches(schema, batches)
    (fragment,) = write_fragments(task, stream)
    size = fragment.files[0].file_size_bytes or 0
    return FileRows(
        files=TableFiles(root=scratch),
        fragment=fragment,
        fields=fields,
        row_bytes=max(1, size // max(1, fragment.physical_rows or 0)),
    )


def _drained(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches and release each of them."""
    held.reverse()
    while held:
        yield held.pop()


def _ordered(schema: pa.Schema, key: str) -> pa.Schema:
    """Move the key to the front, under a unique name."""
    values = [field for field in schema if field.name != key]
    name = _KEY
    while any(field.name == name for field in values):
        name += "_"
    return pa.schema([schema.field(key).with_name(name), *values])


def _with_key_first(batch: pa.RecordBatch, key: str, schema: pa.Schema) -> pa.RecordBatch:
    values = [batch.column(field.name) for field in batch.schema if field.name != key]
    return pa.RecordBatch.from_arrays([batch.column(key), *values], schema=schema)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    arrays = [column.combine_chunks() for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


# Each lookup builds a hash table of all source keys, so many rows are looked up at once.
_LOOKUP_BYTES = 128 << 20
_LOOKUP_ROWS = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """For each fragment, the source row of each live row; stored in files of a folder."""

    folder: Path

    def keep(self, fragment_id: FragmentId, rows: Rows) -> None:
        """Store the rows of a fragment."""
        np.save(self._path(fragment_id), rows)

    def rows(self, fragment_id: FragmentId) -> Rows:
        """Return the rows of a fragment."""
        rows: Rows = np.load(self._path(fragment_id))
        return rows

    def _path(self, fragment_id: FragmentId) -> Path:
        return self.folder / f"{fragment_id}.npy"


def match_rows(scans: Sequence[ScanTask], source: JoinRows, folder: Path) -> Matches:
    """Look up the key column of scans among the source's keys; of equal keys the last one wins."""
    matches = Matches(folder=folder)
    for group in _groups(scans):
        keys = pa.concat_arrays([key for _, key in group])
        rows = _looked_up(keys, source)
        first = 0
        for fragment_id, key in group:
            matches.keep(fragment_id, rows[first : first + len(key)])
            first += len(key)
    return matches


def _groups(scans: Sequence[ScanTask]) -> Iterator[list[tuple[FragmentId, pa.Array]]]:
    """Yield the keys of a few fragments at a time."""
    group: list[tuple[FragmentId, pa.Array]] = []
    size, rows = 0, 0
    for scan in scans:
        parts = [plain_key(batch.column(0)) for batch in execute(scan)]
        dtype = plain_type(scan.spec.output_schema.field(0).type)
        key = pa.concat_arrays(parts) if parts else pa.array([], dtype)
        group.append((scan.fragment.id, key))
        size, rows = size + key.nbytes, rows + len(key)
        if size >= _LOOKUP_BYTES or rows >= _LOOKUP_ROWS:
            yield group
            group, size, rows = [], 0, 0
    if group:
        yield group


def _looked_up(keys: pa.Array, source: JoinRows) -> Rows:
    places: Rows = np.full(len(keys), -1, dtype=np.int64)
    first = 0
    for chunk in source.key_chunks():
        known = plain_key(chunk)
        _ensure_same_type(keys.type, known.type)
        count = len(known)
        if count:
            # The lookup finds the first of equal values, but the last one is needed.
            backwards = known.take(pa.array(np.arange(count - 1, -1, -1)))
            at = _index_in(keys, backwards)
            hit = np.asarray(at.is_valid())
            places[hit] = first + count - 1 - np.asarray(at.drop_null(), dtype=np.int64)
        first += count
    return places


def plain_key(array: pa.Array) -> pa.Array:
    """Return keys in a type that supports lookup."""
    storage = plain_storage(array)
    return storage.dictionary_decode() if pa.types.is_dictionary(storage.type) else storage


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type of keys that supports lookup."""
    return plain_key(pa.array([], dtype)).type


def _index_in(keys: pa.Array, known: pa.Array) -> pa.Array:
    try:
        return pc.index_in(keys, value_set=known)
    except (pa.ArrowException, NotImplementedError) as error:
        msg = f"columns of type {known.type} are not supported as join keys"
        raise UnsupportedError(msg, action="Join on another column.") from error


def _ensure_same_type(left: pa.DataType, right: pa.DataType) -> None:
    if not left.equals(right):
        raise SchemaMismatchError(
            f"the key columns have different types: {left} in the table, {right} in the data",
            expected=str(left),
            found=str(right),
            action="Cast the data's column.",
        )


_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """The table's column and the data's column that must be equal."""

    left: str
    right: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedValues:
    """Values of the source rows that match a fragment's rows; null without a match."""

    source: JoinRows
    matches: Matches

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""
        return self.source.schema

    def batches(self, scan: ScanTask) -> Iterator[pa.RecordBatch]:
        """Yield the values of the live rows."""
        rows = self.matches.rows(scan.fragment.id)
        step = max(1, min(_BATCH_ROWS, _BATCH_BYTES // self.source.row_bytes))
        for first in range(0, len(rows), step):
            yield self.source.take(rows[first : first + step])


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Data to join, and the folder for temporary files, which workers must be able to access."""

    source: JoinRows
    left: str
    folder: Path

    def scans(
        self, base: Snapshot, fragment_ids: tuple[FragmentId, ...] | None = None
    ) -> tuple[ScanTask, ...]:
        """Return the scans of the table's key column."""
        request = ScanRequest(columns=(self.left,), fragment_ids=fragment_ids)
        return plan(base, request).tasks

    def plan(
        self, base: Snapshot, fragment_ids: tuple[FragmentId, ...] | None = None
    ) -> ColumnPlan:
        """Plan the columns of the data as columns of the table."""
        wide = widened(base, self.source.schema)
        file = column_file(base, wide.added)
        file.ensure_possible(self.source.schema)
        scans = self.scans(base, fragment_ids)
        values = JoinedValues(
            source=self.source, matches=match_rows(scans, self.source, self.folder)
        )
        tasks = [ColumnTask(scan=scan, values=values, file=file) for scan in scans]
        return ColumnPlan(schema=wide.schema, tasks=tasks)


def merge_columns(
    base: Snapshot,
    reader: pa.RecordBatchReader,
    key: JoinKey,
    *,
    engine: Engine | None = None,
    choices: CommitChoices = DEFAULT_CHOICES,
    progress: Progress | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Snapshot:
    """Add the data's other columns, with its values where the keys are equal, and commit.

    Rows without a match get nulls; if several rows match, the last one wins.
    """
    ensure_joinable(base, reader.schema, key)
    backfill = Backfill(engine=engine or default_engine(base), choices=choices, progress=progress)
    with tempfile.TemporaryDirectory(prefix="lancelake-join-") as folder:
        join = prepared(reader, key, Path(folder), memory_bytes=memory_bytes)
        return backfill.run(base, join.plan)


def prepared(
    reader: pa.RecordBatchReader, key: JoinKey, folder: Path, *, memory_bytes: int = MEMORY_BYTES
) -> Join:
    """Materialise the data of a join."""
    source = join_rows(reader, key.right, scratch=Location.parse(folder), memory_bytes=memory_bytes)
    return Join(source=source, left=key.left, folder=folder)


def ensure_joinable(base: Snapshot, data: pa.Schema, key: JoinKey) -> None:
    """Refuse a missing key, columns that the table already has, and invalid columns."""
    schema = base.manifest.schema
    if key.left not in META_NAMES and schema.find(key.left) is None:
        problem = f"Column {key.left} does not exist in the left side dataset"
        advice = suggestion(key.left, schema.names, "columns")
        raise InvalidRequestError(problem, column=key.left, action=advice)
    ensure_key(data, key)
    shared = [name for name in data.names if name != key.right and name in schema.names]
    if shared:
        problem = f"Column {shared[0]} exists in both sides of the dataset"
        raise InvalidRequestError(problem, column=shared[0], action="Rename it in the data.")


def ensure_key(data: pa.Schema, key: JoinKey) -> None:
    """Refuse data without the key column, or with no other column."""
    if key.right not in data.names:
        known = ", ".join(data.names)
        problem = f"Column {key.right} does not exist in the right side data, which has: {known}"
        raise InvalidRequestError(problem, column=key.right)
    if len(data.names) == 1:
        problem = f"the data has no column other than the key {key.right}"
        raise InvalidRequestError(problem, column=key.right)
