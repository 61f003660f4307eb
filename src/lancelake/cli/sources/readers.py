"""Readers of source files: Parquet, CSV, JSON and Arrow."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from lancelake.cli.sources.json_array import ArrayLines, starts_array
from lancelake.cli.sources.places import SourceFile
from lancelake.errors import InvalidRequestError, LanceTableError, StorageError

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
    found = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        msg = f"the format of {file.name!r} cannot be inferred from its name"
        raise InvalidRequestError(msg, action="Set it with --format.")
    return found


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
    found = parquet.metadata
    groups = [found.row_group(i) for i in range(found.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    rows = max(1, min(_BATCH_ROWS, _BLOCK_BYTES * found.num_rows // max(1, size)))
    return _counted(parquet.schema_arrow, parquet.iter_batches(batch_size=rows), found.num_rows)


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
    found = next((c for c in _OTHER_DELIMITERS if len(columns) == 1 and c in columns[0]), None)
    if found is not None:
        raise _not_separated(file, repr(columns[0]), found)


def _not_separated(file: SourceFile, found: str, delimiter: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"{file.name!r} has no commas in its first line: {found}",
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
