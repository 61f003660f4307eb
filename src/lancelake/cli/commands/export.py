"""Write the rows of a table to a Parquet, CSV, JSON lines or Arrow file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, TextIO, assert_never

import pyarrow as pa

from lancelake.cli import options, phrases
from lancelake.cli.console import row_bar, stderr
from lancelake.cli.report import json_documents, json_rows, write_csv, write_json_lines
from lancelake.core.values.metadata import is_uri
from lancelake.core.values.reads import ScanRequest
from lancelake.errors import AlreadyExistsError, InvalidRequestError

commands = options.CommandModule()

_STDOUT = "-"


class ExportFormat(Enum):
    """Format of the file."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"
    ARROW = "arrow"


_SUFFIXES = {
    ".parquet": ExportFormat.PARQUET,
    ".pq": ExportFormat.PARQUET,
    ".csv": ExportFormat.CSV,
    ".jsonl": ExportFormat.JSONL,
    ".ndjson": ExportFormat.JSONL,
    ".arrow": ExportFormat.ARROW,
    ".feather": ExportFormat.ARROW,
}

Target = Annotated[str, options.argument("FILE", "File to create; - for standard output.")]
Format = Annotated[
    ExportFormat | None,
    options.option("--format", None, "Format of the file, if it cannot be inferred from its name."),
]


@commands.add(example="photos.lance photos.csv -c id")
def export(
    version: options.Version,
    target: Target,
    format: Format = None,
    columns: options.Columns = None,
    filter: options.Filter = None,
    overwrite: Annotated[bool, options.flag("--overwrite", "Replace the file.")] = False,
) -> None:
    """Write the rows of a table to a Parquet, CSV, JSON lines or Arrow file.

    In CSV and JSON lines, bytes are base64 and times ISO 8601; nested values in CSV are JSON.
    """
    if is_uri(target):
        problem = f"{target!r} is a URI, and rows are exported to local files only"
        raise InvalidRequestError(problem, action="Name a local file, and copy it.")
    kind = _format(target) if format is None else format
    request = ScanRequest(columns=options.column_names(columns), filter=filter)
    with version.open().scan(request).run() as rows:
        if target == _STDOUT:
            _write(rows, rows.schema, kind, sys.stdout)
            return
        count = _write_file(rows, kind, Path(target), is_overwriting=overwrite)
    stderr().print(f"{phrases.plural(count, 'row')} written to {phrases.printable(target)}")


def _format(target: str) -> ExportFormat:
    kind = _SUFFIXES.get(Path(target).suffix.lower())
    if kind is None:
        problem = f"the format of {target!r} cannot be inferred from its name"
        raise InvalidRequestError(problem, action="Set it with --format.")
    return kind


def _write_file(
    rows: pa.RecordBatchReader, kind: ExportFormat, target: Path, *, is_overwriting: bool
) -> int:
    """Write to a file beside the target, and rename it when it is complete."""
    if target.exists() and not is_overwriting:
        problem = f"file {str(target)!r} already exists"
        raise AlreadyExistsError(problem, action="Use --overwrite to replace it.")
    partial = target.with_name(f".{target.name}.partial")
    try:
        with row_bar() as bar:
            if kind in (ExportFormat.CSV, ExportFormat.JSONL):
                with partial.open("w", encoding="utf-8", newline="") as file:
                    _write(bar.count(rows), rows.schema, kind, file)
            else:
                _write_binary(bar.count(rows), rows.schema, kind, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return bar.rows


def _write(
    rows: Iterable[pa.RecordBatch], schema: pa.Schema, kind: ExportFormat, file: TextIO
) -> None:
    match kind:
        case ExportFormat.CSV:
            write_csv(schema.names, json_rows(rows), file)
        case ExportFormat.JSONL:
            write_json_lines(json_documents(rows, schema), file)
        case ExportFormat.ARROW:
            with pa.ipc.new_stream(sys.stdout.buffer, schema) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        case ExportFormat.PARQUET:
            problem = "Parquet cannot be written to standard output"
            raise InvalidRequestError(problem, action="Name a file.")
        case _:
            assert_never(kind)


def _write_binary(
    rows: Iterator[pa.RecordBatch], schema: pa.Schema, kind: ExportFormat, path: Path
) -> None:
    if kind is ExportFormat.PARQUET:
        import pyarrow.parquet as pq  # noqa: PLC0415  # slow to load

        with pq.ParquetWriter(path, schema, compression="zstd") as parquet:
            for batch in rows:
                parquet.write_batch(batch)
        return
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
