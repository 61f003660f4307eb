"""Run of a write: progress on a terminal, and the report of the new version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, stderr
from lancelake.cli.report import report, version_body, version_rows
from lancelake.commit.snapshot import Snapshot
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.core.values.writes import SchemaMode, WriteCounts, WriteOptions
from lancelake.format.operations import Append, Overwrite, Update
from lancelake.storage.location import Location
from lancelake.table.ingest.files import Sources


def write_sources(
    base: Snapshot | None,
    place: Location,
    reading: Sources,
    options: WriteOptions,
    output: OutputFormat,
) -> None:
    """Write source files to a table, which need not exist, and report the new version."""
    clock = place.session.clock
    began = clock.monotonic_s()
    made = _written(base, place, reading, options)
    _report(output, made, round((clock.monotonic_s() - began) * 1000))


def _written(
    base: Snapshot | None, place: Location, reading: Sources, options: WriteOptions
) -> Snapshot:
    reader = reading.reader(is_merging=options.schema_mode is SchemaMode.MERGE)
    with _watched(reading, options) as watched:
        if base is None:
            return TablePlace(place).write(reader, watched)
        return Table(base).write(reader, watched)


@contextmanager
def _watched(reading: Sources, options: WriteOptions) -> Iterator[WriteOptions]:
    """Show the progress on a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield options
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TextColumn("{task.description}"), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=reading.total_bytes)

        def step(counts: WriteCounts) -> None:
            bar.update(task, completed=reading.done_bytes, description=_amount(counts))

        yield replace(options, progress=step)


def _report(output: OutputFormat, made: Snapshot, milliseconds: int) -> None:
    counts = _counts(made)
    body = {
        **version_body(made),
        "rows": counts.rows,
        "files": counts.files,
        "bytes": counts.size_bytes,
        "milliseconds": milliseconds,
    }
    took = Text(phrases.duration(milliseconds))
    report(output, body, [*version_rows(made), ("written", _amount(counts)), ("took", took)])


def _counts(made: Snapshot) -> WriteCounts:
    """Count the rows and files that this run added: none if an earlier one made the version."""
    if made.commit is None or made.transaction is None:
        return WriteCounts()
    operation = made.transaction.operation
    if isinstance(operation, Append | Overwrite):
        return WriteCounts.of(operation.fragments)
    return WriteCounts.of(operation.new_fragments if isinstance(operation, Update) else ())


def _amount(counts: WriteCounts) -> str:
    rows, files = phrases.plural(counts.rows, "row"), phrases.plural(counts.files, "file")
    return f"{rows}  {files}, {phrases.size(counts.size_bytes)}"
