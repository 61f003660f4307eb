"""Read Parquet, CSV, JSON lines and Arrow files as one stream of batches."""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from lancelake.errors import (
    InvalidRequestError,
    LanceTableError,
    NotFoundError,
    SchemaMismatchError,
    StorageError,
)

STDIN = "-"

_BLOCK_BYTES = 16 * 1024 * 1024
_BATCH_ROWS = 64 * 1024
_ARROW_FILE = b"ARROW1"
_ONE_COLUMN = "Expected 1 columns"
_OTHER_DELIMITERS = (";", "\t", "|")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class SourceFormat(Enum):
    """Format of source files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    ARROW = "arrow"


_SUFFIXES = {
    ".parquet": SourceFormat.PARQUET,
    ".pq": SourceFormat.PARQUET,
    ".csv": SourceFormat.CSV,
    ".jsonl": SourceFormat.JSONL,
    ".ndjson": SourceFormat.JSONL,
    ".json": SourceFormat.JSONL,
    ".arrow": SourceFormat.ARROW,
    ".arrows": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A file that is being read; `share` is the fraction already read."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    share: Callable[[], float]


@dataclass(slots=True, kw_only=True)
class Sources:
    """Files that are read in sequence.

    Text has no types: columns in `types` get theirs from there, types of the others are inferred
    from the first part of the first file.
    """

    names: tuple[str, ...]
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
        first = self._open(self.names[0])
        schema = self._typed(self.names[0], first.schema)
        if is_merging:
            others = [self._typed(name, self._open(name).schema) for name in self.names[1:]]
            schema = _united([schema, *others])
        return pa.RecordBatchReader.from_batches(schema, self._batches(first, schema))

    @property
    def total_bytes(self) -> int | None:
        """Size of all files; None if it is unknown."""
        if self.names == (STDIN,):
            return None
        return sum(_size(name) for name in self.names)

    @property
    def done_bytes(self) -> int:
        """Bytes read so far."""
        if self._current is None:
            return self._finished_bytes
        size, share = self._current
        return self._finished_bytes + int(size * min(1.0, share()))

    def _batches(self, first: _Opened, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for position, name in enumerate(self.names):
            opened = self._open(name) if position else first
            size = 0 if name == STDIN else _size(name)
            self._current = (size, opened.share)
            with _FileErrors(name):
                for batch in opened.batches:
                    yield _fitted(name, batch, schema)
            self._current = None
            self._finished_bytes += size

    def _open(self, name: str) -> _Opened:
        opened = self._open_file(name)
        values = {
            column: value
            for column, value in self.partitions.get(name, {}).items()
            if column not in opened.schema.names
        }
        return _with_columns(opened, values) if values else opened

    def _open_file(self, name: str) -> _Opened:
        kind = self._kind(name)
        with _FileErrors(name):
            match kind:
                case SourceFormat.PARQUET:
                    return _open_parquet(name)
                case SourceFormat.CSV:
                    return _open_csv(name, self.types, self.delimiter)
                case SourceFormat.JSONL:
                    return _open_jsonl(name, self.types)
                case SourceFormat.ARROW:
                    return _open_arrow(name)
                case _:
                    assert_never(kind)

    def _kind(self, name: str) -> SourceFormat:
        if self.format is not None:
            return self.format
        if name == STDIN:
            return SourceFormat.ARROW
        suffixes = [s.lower() for s in Path(name).suffixes if s.lower() not in _COMPRESSED]
        found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
        if found is None:
            msg = f"the format of {name!r} cannot be inferred from its name"
            raise InvalidRequestError(msg, action="Set it with --format.")
        return found

    def _typed(self, name: str, schema: pa.Schema) -> pa.Schema:
        """Cast text columns to their types."""
        is_text = self._kind(name) in (SourceFormat.CSV, SourceFormat.JSONL)
        if self.types is None or not is_text:
            return schema
        known = {f.name: f.type for f in self.types}
        return pa.schema([f.with_type(known.get(f.name, f.type)) for f in schema])


def find_sources(patterns: list[str]) -> tuple[str, ...]:
    """Return the source files, those of a pattern in name order."""
    if STDIN in patterns and len(patterns) > 1:
        raise InvalidRequestError("standard input cannot be combined with files")
    return tuple(name for pattern in patterns for name in _matching(pattern))


def _matching(pattern: str) -> list[str]:
    if pattern == STDIN or Path(pattern).is_file():
        return [pattern]
    if Path(pattern).is_dir():
        msg = f"{pattern!r} is a folder"
        raise InvalidRequestError(msg, action=f"Use its files, as in '{pattern}/*.parquet'.")
    if "://" in pattern:
        msg = f"{pattern!r} is not a local file"
        raise InvalidRequestError(
            msg, action="Copy the files to this machine first, or pipe them in."
        )
    found = sorted(name for name in glob.glob(pattern, recursive=True) if Path(name).is_file())  # noqa: PTH207  # a pattern may be absolute
    if not found:
        raise NotFoundError(f"file {pattern!r} does not exist", path=pattern)
    return found


def _open_parquet(name: str) -> _Opened:
    import pyarrow.parquet as pq  # noqa: PLC0415  # slow to load, and only one format is needed

    if name == STDIN:
        msg = "Parquet cannot be read from standard input, since its footer is at the end"
        raise InvalidRequestError(msg, action="Save it as a file first.")
    file = pq.ParquetFile(name)
    found = file.metadata
    groups = [found.row_group(i) for i in range(found.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    rows = max(1, min(_BATCH_ROWS, _BLOCK_BYTES * found.num_rows // max(1, size)))
    return _counted(file.schema_arrow, file.iter_batches(batch_size=rows), found.num_rows)


def _with_columns(opened: _Opened, values: Mapping[str, pa.Scalar]) -> _Opened:
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
    return _Opened(schema=schema, batches=batches, share=opened.share)


def _open_csv(name: str, types: pa.Schema | None, delimiter: str | None) -> _Opened:
    from pyarrow import csv  # noqa: PLC0415  # slow to load, and only one format is needed

    stream, share = _stream(name)
    known = {f.name: _text_type(f.type) for f in types or ()}
    try:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=_character(delimiter or ",")),
            convert_options=csv.ConvertOptions(column_types=known),
        )
    except pa.ArrowInvalid as error:
        if delimiter is None and _ONE_COLUMN in str(error):
            raise _not_separated(name, str(error), ";") from error
        raise
    if delimiter is None:
        _ensure_separated(name, reader.schema.names)
    return _Opened(schema=reader.schema, batches=iter(reader), share=share)


def _character(delimiter: str) -> str:
    """Return the delimiter; a tab may be written as a backslash and a t."""
    character = "\t" if delimiter == "\\t" else delimiter
    if len(character) != 1:
        raise InvalidRequestError(f"the delimiter {delimiter!r} is not a single character")
    return character


def _ensure_separated(name: str, columns: list[str]) -> None:
    """Refuse a file with a single column that appears to have another delimiter."""
    found = next((c for c in _OTHER_DELIMITERS if len(columns) == 1 and c in columns[0]), None)
    if found is not None:
        raise _not_separated(name, repr(columns[0]), found)


def _not_separated(name: str, found: str, delimiter: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{name!r} has no commas in its first line: {found}",
        action=f"Set the delimiter, as in --delimiter {delimiter!r}.",
    )


def _open_jsonl(name: str, types: pa.Schema | None) -> _Opened:
    from pyarrow import json  # noqa: PLC0415  # slow to load, and only one format is needed

    stream, share = _stream(name)
    known = types and pa.schema([f.with_type(_text_type(f.type)) for f in types])
    reader = json.open_json(
        stream,
        read_options=json.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=json.ParseOptions(explicit_schema=known),
    )
    return _Opened(schema=reader.schema, batches=iter(reader), share=share)


def _open_arrow(name: str) -> _Opened:
    if name == STDIN:
        reader = pa.ipc.open_stream(sys.stdin.buffer)
        return _Opened(schema=reader.schema, batches=iter(reader), share=lambda: 0.0)
    with Path(name).open("rb") as file:
        is_file = file.read(len(_ARROW_FILE)) == _ARROW_FILE
    if not is_file:
        stream, share = _stream(name)
        reader = pa.ipc.open_stream(stream)
        return _Opened(schema=reader.schema, batches=iter(reader), share=share)
    whole = pa.ipc.open_file(pa.memory_map(name))
    numbers = range(whole.num_record_batches)
    done = [0]

    def batches() -> Iterator[pa.RecordBatch]:
        for number in numbers:
            done[0] = number
            yield whole.get_batch(number)

    share = lambda: done[0] / max(1, len(numbers))  # noqa: E731  # one value of three
    return _Opened(schema=whole.schema, batches=batches(), share=share)


def _counted(schema: pa.Schema, batches: Iterator[pa.RecordBatch], rows: int) -> _Opened:
    """Report progress by the rows that were read."""
    done = [0]

    def counting() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done[0] += batch.num_rows
            yield batch

    return _Opened(schema=schema, batches=counting(), share=lambda: done[0] / max(1, rows))


def _stream(name: str) -> tuple[Any, Callable[[], float]]:  # pyarrow's files have no types
    """Open a file for sequential reading, decompressing it if necessary."""
    if name == STDIN:
        return sys.stdin.buffer, lambda: 0.0
    raw = pa.OSFile(name)
    size = max(1, _size(name))
    packed = _COMPRESSED.get(Path(name).suffix.lower())
    stream = pa.CompressedInputStream(raw, packed) if packed else raw
    return stream, lambda: 1.0 if raw.closed else raw.tell() / size


def _text_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type that text is parsed as before it is cast."""
    if isinstance(dtype, pa.ExtensionType):
        return _text_type(dtype.storage_type)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_text_type(dtype.value_type))
    return dtype


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


def _size(name: str) -> int:
    return Path(name).stat().st_size


class _FileErrors:
    """Converts errors about a file to our errors."""

    def __init__(self, name: str) -> None:
        self._name = "standard input" if name == STDIN else repr(name)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, LanceTableError):
            return
        if isinstance(error, pa.ArrowException):
            msg = f"{self._name} cannot be read: {error}"
            raise InvalidRequestError(msg, action="Correct the file, or the --format.") from error
        if isinstance(error, OSError):
            raise StorageError(f"{self._name} cannot be read: {error}") from error
