"""Rows of CSV, JSON, Parquet, Arrow and Lance files, and of folders with partitions."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, BinaryIO, assert_never
from urllib.parse import unquote

import pyarrow as pa

from lancelake.errors import InvalidRequestError, LanceTableError, SchemaMismatchError, StorageError
from lancelake.table.ingest.delta_log import read_delta
from lancelake.table.ingest.places import Locate, SourceFile, find_sources, is_delta


def sources_of(source: str, locate: Locate) -> Sources:
    """Return the rows of the newest version of a Delta table, or of the files of a folder.

    Folders such as `day=1` are columns.
    """
    if is_delta(source, locate):
        delta = read_delta(source, locate)
        if not delta.files:
            raise InvalidRequestError("the Delta table has no rows", table=source)
        return Sources(files=delta.files, format=SourceFormat.PARQUET, partitions=delta.partitions)
    files = find_sources([source], locate, FOLDER_SUFFIXES)
    return Sources(files=files, partitions=partition_columns([file.name for file in files]))


_CHUNK = 1 << 20
_SPACE = " \t\r\n"
_BETWEEN = re.compile(r"[\s,]*")


def starts_array(head: bytes) -> bool:
    """Whether the first bytes of a file open an array."""
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")


class ArrayLines(io.RawIOBase):
    """Reads an array of objects as lines; only one object and a chunk are in memory."""

    def __init__(self, file: BinaryIO) -> None:
        """Read from a file that is positioned at its begin."""
        super().__init__()
        self._text = io.TextIOWrapper(file, encoding="utf-8-sig")
        self._lines = (json.dumps(item).encode() + b"\n" for item in _items(self._text))
        self._left = b""

    def readable(self) -> bool:
        """Whether this is readable: it is."""
        return True

    def readinto(self, buffer: Any) -> int:  # any writable buffer
        """Read the next bytes."""
        if not self._left:
            self._left = next(self._lines, b"")
        length = min(len(buffer), len(self._left))
        buffer[:length] = self._left[:length]
        self._left = self._left[length:]
        return length


def _items(text: io.TextIOWrapper) -> Iterator[object]:
    decoder = json.JSONDecoder()
    pending = text.read(_CHUNK).lstrip(_SPACE)
    at = 1
    while True:
        at = _BETWEEN.match(pending, at).end()  # type: ignore[union-attr]  # it matches anywhere
        if pending.startswith("]", at):
            return
        try:
            item, at = decoder.raw_decode(pending, at)
        except json.JSONDecodeError as error:
            more = text.read(max(_CHUNK, len(pending) - at))
            if not more:
                raise InvalidRequestError(f"the JSON array is not valid: {error}") from error
            pending, at = pending[at:] + more, 0
            continue
        yield item


_BLOCK_BYTES = 16 * 1024 * 1024
_BATCH_ROWS = 64 * 1024
_HEAD_BYTES = 1024
_ARROW_FILE = b"ARROW1"
_ONE_COLUMN = "Expected 1 columns"
_OTHER_DELIMITERS = (";", "\t", "|")
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


class SourceFormat(Enum):
    """Format of source files."""

    PARQUET = "parquet"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    ARROW = "arrow"


SUFFIXES = {
    ".parquet": SourceFormat.PARQUET,
    ".pq": SourceFormat.PARQUET,
    ".csv": SourceFormat.CSV,
    ".tsv": SourceFormat.TSV,
    ".jsonl": SourceFormat.JSONL,
    ".ndjson": SourceFormat.JSONL,
    ".json": SourceFormat.JSON,
    ".arrow": SourceFormat.ARROW,
    ".arrows": SourceFormat.ARROW,
    ".ipc": SourceFormat.ARROW,
    ".feather": SourceFormat.ARROW,
}
FOLDER_SUFFIXES = tuple(f"{suffix}{packed}" for suffix in SUFFIXES for packed in ("", *_COMPRESSED))


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFile:
    """A file that is being read; `share` is the fraction already read."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    share: Callable[[], float]


def format_of(file: SourceFile) -> SourceFormat:
    """Return the format of a file by its name."""
    if file.is_stdin:
        return SourceFormat.ARROW
    suffixes = [s.lower() for s in Path(file.name).suffixes if s.lower() not in _COMPRESSED]
    format = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if format is None:
        msg = f"the format of {file.name!r} cannot be inferred from its name"
        raise InvalidRequestError(msg, action="Set it with --format.")
    return format


def open_file(
    file: SourceFile, kind: SourceFormat, types: pa.Schema | None, delimiter: str | None
) -> OpenedFile:
    """Open a file; text columns in `types` get theirs from there."""
    with FileErrors(file):
        opened = _opened(file, kind, types, delimiter)
        _ensure_readable_names(opened.schema)
        return opened


def _opened(
    file: SourceFile, kind: SourceFormat, types: pa.Schema | None, delimiter: str | None
) -> OpenedFile:
    match kind:
        case SourceFormat.PARQUET:
            return _open_parquet(file)
        case SourceFormat.CSV:
            return _open_csv(file, types, delimiter)
        case SourceFormat.TSV:
            return _open_csv(file, types, delimiter or "\t")
        case SourceFormat.JSONL | SourceFormat.JSON:
            return _open_json(file, types)
        case SourceFormat.ARROW:
            return _open_arrow(file)
        case _:
            assert_never(kind)


def _ensure_readable_names(columns: Iterable[pa.Field]) -> None:
    """Read the name of every column and field; one that is not UTF-8 raises UnicodeDecodeError."""
    for column in columns:
        if column.name and isinstance(column.type, pa.StructType):
            _ensure_readable_names(column.type)


def _open_parquet(file: SourceFile) -> OpenedFile:
    import pyarrow.parquet as pq  # noqa: PLC0415  # slow to load, and only one format is needed

    if file.is_stdin:
        msg = "Parquet cannot be read from standard input, since its footer is at the end"
        raise InvalidRequestError(msg, action="Save it as a file first.")
    parquet = pq.ParquetFile(file.open())
    footer = parquet.metadata
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    rows = max(1, min(_BATCH_ROWS, _BLOCK_BYTES * footer.num_rows // max(1, size)))
    return _counted(parquet.schema_arrow, parquet.iter_batches(batch_size=rows), footer.num_rows)


def _open_csv(file: SourceFile, types: pa.Schema | None, delimiter: str | None) -> OpenedFile:
    from pyarrow import csv  # noqa: PLC0415  # slow to load, and only one format is needed

    stream, share = _stream(file)
    known = {f.name: _text_type(f.type) for f in types or ()}
    try:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=_character(delimiter or ",")),
            # Writing checks text; a check here would turn a column with invalid text to binary.
            convert_options=csv.ConvertOptions(column_types=known, check_utf8=False),
        )
    except pa.ArrowInvalid as error:
        if delimiter is None and _ONE_COLUMN in str(error):
            raise _not_separated(file, str(error), ";") from error
        raise
    if delimiter is None:
        _ensure_separated(file, reader.schema.names)
    return _by_block(reader, file, share)


def _character(delimiter: str) -> str:
    """Return the delimiter; a tab may be written as a backslash and a t."""
    character = "\t" if delimiter == "\\t" else delimiter
    if len(character) != 1:
        raise InvalidRequestError(f"the delimiter {delimiter!r} is not a single character")
    return character


def _ensure_separated(file: SourceFile, columns: list[str]) -> None:
    """Refuse a file with a single column that appears to have another delimiter."""
    delimiter = next((c for c in _OTHER_DELIMITERS if len(columns) == 1 and c in columns[0]), None)
    if delimiter is not None:
        raise _not_separated(file, repr(columns[0]), delimiter)


def _not_separated(file: SourceFile, line: str, delimiter: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{file.name!r} has no commas in its first line: {line}",
        action=f"Set the delimiter, as in --delimiter {delimiter!r}.",
    )


def _open_json(file: SourceFile, types: pa.Schema | None) -> OpenedFile:
    from pyarrow import json  # noqa: PLC0415  # slow to load, and only one format is needed

    stream, share = _stream(file)
    if not file.is_stdin and starts_array(_stream(file)[0].read(_HEAD_BYTES)):
        stream = pa.PythonFile(io.BufferedReader(ArrayLines(stream)), mode="r")
    known = types and pa.schema([f.with_type(_text_type(f.type)) for f in types])
    reader = json.open_json(
        stream,
        read_options=json.ReadOptions(block_size=_BLOCK_BYTES),
        parse_options=json.ParseOptions(explicit_schema=known),
    )
    return _by_block(reader, file, share)


def _open_arrow(file: SourceFile) -> OpenedFile:
    if file.is_stdin:
        reader = pa.ipc.open_stream(sys.stdin.buffer)
        return OpenedFile(schema=reader.schema, batches=iter(reader), share=lambda: 0.0)
    with file.open_binary() as begin:
        is_file = begin.read(len(_ARROW_FILE)) == _ARROW_FILE
    if not is_file:
        stream, share = _stream(file)
        reader = pa.ipc.open_stream(stream)
        return OpenedFile(schema=reader.schema, batches=iter(reader), share=share)
    whole = pa.ipc.open_file(file.open())
    numbers = range(whole.num_record_batches)
    done = [0]

    def batches() -> Iterator[pa.RecordBatch]:
        for number in numbers:
            done[0] = number
            yield whole.get_batch(number)

    share = lambda: done[0] / max(1, len(numbers))  # noqa: E731  # one value of three
    return OpenedFile(schema=whole.schema, batches=batches(), share=share)


def _counted(
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    total: int,
    count: Callable[[pa.RecordBatch], int] = len,
) -> OpenedFile:
    """Report progress by what was read of a total: rows, unless `count` counts otherwise."""
    done = [0]

    def counting() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done[0] += count(batch)
            yield batch

    return OpenedFile(schema=schema, batches=counting(), share=lambda: done[0] / max(1, total))


def _by_block(
    reader: pa.RecordBatchReader, file: SourceFile, share: Callable[[], float]
) -> OpenedFile:
    """Report progress by the blocks that became batches: the parser reads ahead of them."""
    if file.is_stdin or Path(file.name).suffix.lower() in _COMPRESSED:
        return OpenedFile(schema=reader.schema, batches=iter(reader), share=share)
    blocks = max(1, -(-file.size_bytes // _BLOCK_BYTES))
    return _counted(reader.schema, iter(reader), blocks, count=lambda _: 1)


def _stream(file: SourceFile) -> tuple[Any, Callable[[], float]]:  # pyarrow's files have no types
    """Open a file for sequential reading, decompressing it if necessary."""
    if file.is_stdin:
        return sys.stdin.buffer, lambda: 0.0
    raw = file.open()
    size = max(1, file.size_bytes)
    packed = _COMPRESSED.get(Path(file.name).suffix.lower())
    stream = pa.CompressedInputStream(raw, packed) if packed else raw
    return stream, lambda: 1.0 if raw.closed else raw.tell() / size


def _text_type(dtype: pa.DataType) -> pa.DataType:
    """Return the type that text is parsed as before it is cast."""
    if isinstance(dtype, pa.ExtensionType):
        return _text_type(dtype.storage_type)
    if pa.types.is_fixed_size_list(dtype):
        return pa.list_(_text_type(dtype.value_type))
    return dtype


class FileErrors:
    """Converts errors about a file to our errors."""

    def __init__(self, file: SourceFile) -> None:
        self._name = "standard input" if file.is_stdin else repr(file.name)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, LanceTableError):
            return
        if isinstance(error, pa.ArrowException):
            msg = f"{self._name} cannot be read: {error}"
            raise InvalidRequestError(msg, action="Correct the file, or the --format.") from error
        if isinstance(error, UnicodeDecodeError):
            msg = f"{self._name} has a column whose name is not UTF-8: {error.object!r}"
            raise InvalidRequestError(msg, action="Rename the column.") from error
        if isinstance(error, OSError):
            raise StorageError(f"{self._name} cannot be read: {error}") from error


_NULL = "__HIVE_DEFAULT_PARTITION__"
_FOLDER = re.compile(r"([^=]+)=(.*)")
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def partition_columns(names: Sequence[str]) -> dict[str, dict[str, pa.Scalar]]:
    """Return the partition values of each file: integers if all are integers, else text.

    A number with leading zeros is text, since it would not be written back unchanged.
    """
    values_by_name = {name: _folders(name) for name in names}
    columns = {column for values in values_by_name.values() for column in values}
    types = {
        column: _type([v[column] for v in values_by_name.values() if v.get(column) is not None])
        for column in columns
    }
    return {
        name: {c: pa.scalar(_value(v, types[c]), types[c]) for c, v in values.items()}
        for name, values in values_by_name.items()
        if values
    }


def _folders(name: str) -> dict[str, str | None]:
    matches = (_FOLDER.fullmatch(part) for part in PurePath(name).parts[:-1])
    pairs = ((unquote(m[1]), unquote(m[2])) for m in matches if m is not None)
    return {column: None if value == _NULL else value for column, value in pairs}


def _type(values: Sequence[str | None]) -> pa.DataType:
    whole = all(v is not None and _WHOLE.fullmatch(v) and str(int(v)) == v for v in values)
    return pa.int64() if values and whole else pa.string()


def _value(text: str | None, dtype: pa.DataType) -> int | str | None:
    return text if text is None or not pa.types.is_integer(dtype) else int(text)


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


def _cast_type(own: pa.DataType, known: pa.DataType) -> pa.DataType:
    """Return the type that typed values are cast to: nested ones only to vectors."""
    is_kept = pa.types.is_nested(own) and not pa.types.is_fixed_size_list(known)
    return own if is_kept or isinstance(own, pa.ExtensionType) else known


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
