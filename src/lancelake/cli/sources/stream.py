"""Stream of batches of source files, in common columns and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.cli.sources.places import SourceFile
from lancelake.cli.sources.readers import (
    FileErrors,
    OpenedFile,
    SourceFormat,
    format_of,
    open_file,
)
from lancelake.errors import SchemaMismatchError


@dataclass(slots=True, kw_only=True)
class Sources:
    """Files that are read in sequence.

    Columns in `types` are cast to the types there. Types of other columns of text are inferred
    from the first part of the first file.
    """

    files: tuple[SourceFile, ...]
    format: SourceFormat | None = None
    types: pa.Schema | None = None
    delimiter: str | None = None
    partitions: Mapping[str, Mapping[str, pa.Scalar]] = field(default_factory=dict)
    """Partition columns of a file, with their value; the file's own columns take precedence."""

    _finished_bytes: int = 0
    _current: tuple[int, Callable[[], float]] | None = field(default=None, repr=False)

    def reader(self, *, is_merging: bool = False) -> pa.RecordBatchReader:
        """Return all rows; the columns are those of the first file, or of all files when merging.

        Columns are matched by name; one that a later file lacks is null in its rows.
        """
        first = self._open(self.files[0])
        schema = self._typed(self.files[0], first.schema)
        if is_merging:
            others = [self._typed(file, self._open(file).schema) for file in self.files[1:]]
            schema = _united([schema, *others])
        return pa.RecordBatchReader.from_batches(schema, self._batches(first, schema))

    @property
    def total_bytes(self) -> int | None:
        """Size of all files; None if it is unknown."""
        if any(file.is_stdin for file in self.files):
            return None
        return sum(file.size_bytes for file in self.files)

    @property
    def done_bytes(self) -> int:
        """Bytes read so far."""
        if self._current is None:
            return self._finished_bytes
        size, share = self._current
        return self._finished_bytes + int(size * min(1.0, share()))

    def _batches(self, first: OpenedFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for position, file in enumerate(self.files):
            opened = self._open(file) if position else first
            self._current = (file.size_bytes, opened.share)
            with FileErrors(file):
                for batch in opened.batches:
                    yield _fitted(file.name, batch, schema)
            self._current = None
            self._finished_bytes += file.size_bytes

    def _open(self, file: SourceFile) -> OpenedFile:
        opened = open_file(file, self._kind(file), self.types, self.delimiter)
        values = {
            column: value
            for column, value in self.partitions.get(file.name, {}).items()
            if column not in opened.schema.names
        }
        return _with_columns(opened, values) if values else opened

    def _kind(self, file: SourceFile) -> SourceFormat:
        return format_of(file) if self.format is None else self.format

    def _typed(self, file: SourceFile, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the types of known columns."""
        if self.types is None:
            return schema
        is_typed = self._kind(file) in (SourceFormat.PARQUET, SourceFormat.ARROW)
        known = {f.name: f.type for f in self.types}
        types = [known.get(f.name, f.type) for f in schema]
        if is_typed:
            types = [_cast_type(f.type, t) for f, t in zip(schema, types, strict=True)]
        fields = [f.with_type(t) for f, t in zip(schema, types, strict=True)]
        return pa.schema(fields, schema.metadata)


def _cast_type(found: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return the type that typed values are cast to: nested ones only to vectors."""
    is_kept = pa.types.is_nested(found) and not pa.types.is_fixed_size_list(known)
    return found if is_kept or isinstance(found, pa.ExtensionType) else known


def _with_columns(opened: OpenedFile, values: Mapping[str, pa.Scalar]) -> OpenedFile:
    """Add columns with a constant value."""
    added = [pa.field(column, value.type) for column, value in values.items()]
    schema = pa.schema([*opened.schema, *added], opened.schema.metadata)
    batches = (
        pa.RecordBatch.from_arrays(
            [*batch.columns, *(pa.repeat(value, batch.num_rows) for value in values.values())],
            schema=schema,
        )
        for batch in opened.batches
    )
    return OpenedFile(schema=schema, batches=batches, share=opened.share)


def _united(schemas: list[pa.Schema]) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas)
    except pa.ArrowException as error:
        raise SchemaMismatchError(f"the files have different schemas: {error}") from error


def _fitted(name: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to the common columns and types."""
    if batch.schema.equals(schema):
        return batch
    extra = [n for n in batch.schema.names if n not in schema.names]
    if extra:
        raise SchemaMismatchError(
            f"{name!r} has columns that the first file lacks: {', '.join(extra)}",
            action="Write it separately, or with --merge-schema.",
        )
    columns = [_column(name, batch, f) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(name: str, batch: pa.RecordBatch, target: pa.Field) -> pa.Array:
    position = batch.schema.get_field_index(target.name)
    if position < 0:
        return pa.nulls(batch.num_rows, target.type)
    try:
        return batch.column(position).cast(target.type)
    except pa.ArrowException as error:
        msg = f"column {target.name!r} of {name!r} does not match: {error}"
        raise SchemaMismatchError(msg, expected=str(target.type)) from error
