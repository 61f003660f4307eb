"""Source of a merge: its rows and their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.codec.official import fresh_path
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError, suggestion
from lancelake.format.arrow_schema import storage_field
from lancelake.format.schema import Field, Schema

RowNumbers = npt.NDArray[np.int64]

MEMORY_BYTES = 256 << 20
_BATCH_ROWS = 1 << 16
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRows:
    """Rows in memory, or in a local file that is memory-mapped for reading."""

    rows: pa.Table | Path
    num_rows: int
    schema: pa.Schema
    nbytes: int

    def table(self) -> pa.Table:
        """Return all rows; those in a file are loaded on access."""
        if isinstance(self.rows, pa.Table):
            return self.rows
        with pa.memory_map(str(self.rows)) as mapped:
            rows = pa.ipc.open_file(mapped).read_all()
        return rows if rows.schema.names == self.schema.names else rows.select(self.schema.names)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return some columns of all rows."""
        return self.table().select(list(names))

    def without(self, column: str) -> SourceRows:
        """Return the same rows without a column."""
        schema = self.schema.remove(self.schema.get_field_index(column))
        rows = self.rows.select(schema.names) if isinstance(self.rows, pa.Table) else self.rows
        return replace(self, rows=rows, schema=schema)

    def batches(
        self, numbers: RowNumbers, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows with these numbers, in their order."""
        table = self.table() if columns is None else self.columns(columns)
        for part in split(numbers, self.batch_rows):
            yield take_rows(table, part)

    @property
    def batch_rows(self) -> int:
        """Number of rows of a batch of bounded size."""
        width = self.nbytes / self.num_rows if self.num_rows else 0
        return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / width))) if width else _BATCH_ROWS


def split(numbers: RowNumbers, size: int) -> Iterator[RowNumbers]:
    """Split numbers into runs of this length."""
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def take_rows(table: pa.Table, numbers: RowNumbers) -> pa.RecordBatch:
    """Return the selected rows of a table as one batch."""
    if not table.num_columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(numbers), pa.struct([])))
    is_run = len(numbers) > 0 and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1
    if is_run and bool(np.all(np.diff(numbers) == 1)):
        return _as_batch(table.slice(int(numbers[0]), len(numbers)))
    return _as_batch(table.take(pa.array(numbers)))


def _as_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch."""
    combined = table.combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in combined.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


@contextmanager
def read_source(
    reader: pa.RecordBatchReader, *, memory_bytes: int = MEMORY_BYTES
) -> Iterator[SourceRows]:
    """Read a source to its end; beyond the memory limit it is spilled to disk."""
    rows = _read(reader, memory_bytes)
    try:
        yield rows
    finally:
        if isinstance(rows.rows, Path):
            rows.rows.unlink()


def _read(reader: pa.RecordBatchReader, memory_bytes: int) -> SourceRows:
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size > memory_bytes:
            return _spill(reader, batches)
    table = pa.Table.from_batches(batches, reader.schema)
    return SourceRows(rows=table, num_rows=table.num_rows, schema=reader.schema, nbytes=size)


def _spill(reader: pa.RecordBatchReader, first: list[pa.RecordBatch]) -> SourceRows:
    path = fresh_path()
    rows = size = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, reader.schema) as writer:
        while first:
            batch = first.pop(0)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            writer.write_batch(batch)
        for batch in reader:
            rows, size = rows + batch.num_rows, size + batch.nbytes
            writer.write_batch(batch)
    return SourceRows(rows=path, num_rows=rows, schema=reader.schema, nbytes=size)


def key_fields(on: Sequence[str], schema: Schema) -> tuple[Field, ...]:
    """Find the key columns; names are case-sensitive only if they are ambiguous otherwise."""
    fields = tuple(_field(name, schema.fields) for name in on)
    if len({field.id for field in fields}) < len(fields):
        raise InvalidRequestError(f"a key contains a column twice: {', '.join(on)}")
    for field in fields:
        comparable_type(field)
    return fields


def comparable_type(field: Field) -> pa.DataType:
    """Return the type in which values of a key column are compared."""
    stored = storage_field(field).type
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    if field.is_json or pa.types.is_nested(stored) or pa.types.is_null(stored):
        problem = (
            f"column {field.name} of type {field.logical_type} is not supported as a merge key"
        )
        raise UnsupportedError(
            problem, column=field.name, action="Choose a key column of another type."
        )
    if pa.types.is_float16(stored):
        return pa.int16()
    if pa.types.is_floating(stored):
        return pa.int64() if pa.types.is_float64(stored) else pa.int32()
    return stored


def is_comparable(field: Field) -> bool:
    """Whether a column can be part of a key."""
    try:
        comparable_type(field)
    except UnsupportedError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparer:
    """Normalises the values of a key column so that equal values are bitwise equal."""

    name: str
    plain: pa.DataType
    target: pa.DataType

    @staticmethod
    def of(field: Field) -> Comparer:
        """Choose the normalisation from the type of a key column."""
        plain = storage_field(field).type
        plain = plain.value_type if pa.types.is_dictionary(plain) else plain
        return Comparer(name=field.name, plain=plain, target=comparable_type(field))

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the normalised values; floats by their bits."""
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            if not values.type.equals(self.plain):
                values = _cast(values, self.plain)
        except pa.ArrowException as error:
            problem = f"Can't cast values of key column {self.name} to type {self.plain}: {error}"
            raise SchemaMismatchError(problem, path=self.name, expected=str(self.plain)) from error
        return values if self.plain.equals(self.target) else values.view(self.target)

    def whole(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a whole column normalised."""
        return pa.chunked_array([self(chunk) for chunk in column.chunks], self.target)


def describe_key(key: Iterable[object], fields: Sequence[Field]) -> str:
    """Return a key as text for messages."""
    return ", ".join(f"{f.name} = {v!r}" for f, v in zip(fields, key, strict=True))


def is_complete(columns: Sequence[pa.Array]) -> pa.Array:
    """Whether no part of a key is null."""
    mask = pc.is_valid(columns[0])
    for column in columns[1:]:
        mask = pc.and_(mask, pc.is_valid(column))
    return mask


def _field(name: str, fields: tuple[Field, ...]) -> Field:
    exact = [f for f in fields if f.name == name]
    alike = exact or [f for f in fields if f.name.lower() == name.lower()]
    if len(alike) != 1:
        problem = f"Merge insert key column {name!r} does not exist in schema"
        advice = suggestion(name, [f.name for f in fields], "columns")
        raise InvalidRequestError(problem, column=name, action=advice)
    return alike[0]


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    if _kind(values.type) != _kind(target):
        raise pa.ArrowInvalid(f"values of type {values.type} are of another kind")
    return values.cast(target)


def _kind(dtype: pa.DataType) -> str:
    """Return the kind of values of a type; only values of the same kind can be equal."""
    types = pa.types
    if types.is_null(dtype) or types.is_boolean(dtype):
        return str(dtype)
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_temporal(dtype):
        return "duration" if types.is_duration(dtype) else "time"
    return "text" if _is_text(dtype) else "bytes"


def _is_text(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )


SOURCE_ROW = "source_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKeys:
    """A column for each part of the key, in the order of the source rows."""

    table: pa.Table
    are_unique: bool
    """Whether complete keys are known to be unique."""

    numbers: RowNumbers | None = None
    """The number of each row, by default its position."""

    @staticmethod
    def of(source: SourceRows, fields: Sequence[Field], names: Sequence[str]) -> SourceKeys:
        """Read the keys of all source rows."""
        rows = source.columns(names)
        columns = [
            Comparer.of(field).whole(rows.column(name))
            for name, field in zip(names, fields, strict=True)
        ]
        table = pa.table(columns, names=[f"k{i}" for i in range(len(columns))])
        return SourceKeys(table=table, are_unique=len(columns) == 1 and _are_unique(columns[0]))

    def complete(self) -> pa.Table:
        """Return the keys without a null, with their row numbers."""
        numbers = np.arange(self.table.num_rows) if self.numbers is None else self.numbers
        numbered = self.table.append_column(SOURCE_ROW, pa.array(numbers))
        columns = self.table.columns
        if any(column.null_count for column in columns):
            numbered = numbered.filter(is_complete(columns))
        return numbered

    def parts(self, size: int) -> Iterator[pa.Table]:
        """Yield the keys without a null, with their row numbers, this many at a time."""
        numbered = self.complete()
        for start in range(0, numbered.num_rows, size):
            yield numbered.slice(start, size)


def _are_unique(column: pa.ChunkedArray) -> bool:
    if pa.types.is_integer(column.type) and not column.null_count:
        ordered = np.sort(column.to_numpy())
        return not bool((ordered[1:] == ordered[:-1]).any())
    different: int = pc.count_distinct(column).as_py()
    return different == len(column) - int(column.null_count)
