"""Consoles for standard output and standard error, output formats, and progress on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console

from lancelake.cli import phrases

if TYPE_CHECKING:  # most commands show no progress
    import pyarrow as pa
    from rich.progress import Progress as Bar

    from lancelake.core.values.indices import JobProgress, Progress

_PIPE_WIDTH = 120


class OutputFormat(Enum):
    """A table for people, or JSON for programs."""

    TABLE = "table"
    JSON = "json"


class RowFormat(Enum):
    """Rows as a table for people, or as JSON, JSON lines or CSV for programs."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


class _PlainConsole(Console):
    """A console that does not pad lines in a pipe, and passes broken pipes to the caller."""

    def print(self, *objects: Any, **options: Any) -> None:  # as in rich
        """Print, without trailing spaces if the output is not a terminal."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as captured:
            super().print(*objects, **options)
        lines = captured.get().split("\n")
        self.file.write("\n".join(line.rstrip(" ") for line in lines))

    def on_broken_pipe(self) -> NoReturn:
        """Pass the error to the caller."""
        self.quiet = True
        raise BrokenPipeError


def stdout() -> Console:
    """Return the console for results: coloured on a terminal, plain elsewhere."""
    return _console(is_stderr=False)


def stderr() -> Console:
    """Return the console for messages and progress."""
    return _console(is_stderr=True)


def print_json(value: object) -> None:
    """Print a JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _console(*, is_stderr: bool) -> Console:
    console = _PlainConsole(stderr=is_stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    return console


@contextmanager
def progress_bar(*, has_total: bool) -> Iterator[Bar | None]:
    """Show a bar with a description until the end of the block; None without a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield None
        return
    from rich import progress  # noqa: PLC0415  # slow to load, and only a terminal shows it

    share = [progress.TaskProgressColumn()] if has_total else []
    columns = (progress.BarColumn(), *share, progress.TimeElapsedColumn())
    text = progress.TextColumn("{task.description}")
    with progress.Progress(*columns, text, console=console, transient=True) as bar:
        yield bar


@contextmanager
def job_bar(unit: str) -> Iterator[Progress | None]:
    """Show the progress of a job on a terminal."""
    with progress_bar(has_total=True) as bar:
        if bar is None:
            yield None
            return
        task = bar.add_task("", total=None)

        def step(progress: JobProgress) -> None:
            done = f"{progress.done} of {phrases.plural(progress.total, unit)}"
            bar.update(task, total=progress.total, completed=progress.done, description=done)

        yield step


@dataclass(slots=True)
class CountedRows:
    """Rows that were passed on so far."""

    bar: Bar | None = None
    rows: int = 0

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass batches on, and count their rows."""
        task = None if self.bar is None else self.bar.add_task("", total=None)
        for batch in batches:
            yield batch
            self.rows += batch.num_rows
            if self.bar is not None and task is not None:
                self.bar.update(task, description=phrases.plural(self.rows, "row"))


@contextmanager
def row_bar() -> Iterator[CountedRows]:
    """Count rows, shown on a terminal."""
    with progress_bar(has_total=False) as bar:
        yield CountedRows(bar)
