"""`lancelake export`: write the rows of a table to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, TextIO, assert_never

import pyarrow as pa
import typer

from lancelake.cli import words
from lancelake.cli.at import open_at
from lancelake.cli.console import stderr
from lancelake.cli.job_bar import row_bar
from lancelake.cli.options import At, Columns, Filter, StorageOptions, Uri, column_names, location
from lancelake.cli.row_text import write_csv, write_json_lines
from lancelake.errors import AlreadyExistsError, InvalidRequestError
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.scan.stream import run

app = typer.Typer(add_completion=False, rich_markup_mode=None)

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

Target = Annotated[
    str,
    typer.Argument(
        metavar="FILE", show_default=False, help="File to create; - for standard output."
    ),
]
Format = Annotated[
    ExportFormat | None,
    typer.Option(
        "--format",
        show_default=False,
        help="Format of the file, if it cannot be inferred from its name.",
    ),
]


@app.command()
def export(
    uri: Uri,
    target: Target,
    format: Format = None,
    columns: Columns = None,
    filter: Filter = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    at: At = None,
    options: StorageOptions = None,
) -> None:
    """Write the rows of a table to a Parquet, CSV, JSON lines or Arrow file.

    In CSV and JSON lines, bytes are base64 and times ISO 8601; nested values in CSV are JSON.
    """
    kind = _format(target) if format is None else format
    snapshot = open_at(location(uri, options), at)
    request = ScanRequest(columns=column_names(columns), filter=filter)
    with run(plan(snapshot, request)) as rows:
        if target == _STDOUT:
            _write(rows, rows.schema, kind, sys.stdout)
            return
        written = _to_file(rows, kind, Path(target), is_overwriting=overwrite)
    stderr().print(f"{words.plural(written, 'row')} written to {words.printable(target)}")


def _format(target: str) -> ExportFormat:
    found = _SUFFIXES.get(Path(target).suffix.lower())
    if found is None:
        problem = f"the format of {target!r} cannot be inferred from its name"
        raise InvalidRequestError(problem, action="Set it with --format.")
    return found


def _to_file(
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
                    _write(bar.counted(rows), rows.schema, kind, file)
            else:
                _write_binary(bar.counted(rows), rows.schema, kind, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return bar.rows


def _write(
    rows: Iterable[pa.RecordBatch], schema: pa.Schema, kind: ExportFormat, file: TextIO
) -> None:
    match kind:
        case ExportFormat.CSV:
            write_csv(rows, schema, file)
        case ExportFormat.JSONL:
            write_json_lines(rows, file)
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
