"""Progress bar of a job on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from lancelake.cli import words
from lancelake.cli.console import stderr
from lancelake.engine.port import JobProgress, Progress


@contextmanager
def job_bar(unit: str) -> Iterator[Progress | None]:
    """Show the progress of a job on a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield None
        return
    shown = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bar(*shown, TextColumn("{task.description}"), console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def step(progress: JobProgress) -> None:
            done = f"{progress.done} of {words.plural(progress.total, unit)}"
            bar.update(task, total=progress.total, completed=progress.done, description=done)

        yield step


@dataclass(slots=True)
class CountedRows:
    """Rows that were passed on so far."""

    bar: Bar | None = None
    rows: int = 0

    def counted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass batches on, and count their rows."""
        task = None if self.bar is None else self.bar.add_task("", total=None)
        for batch in batches:
            yield batch
            self.rows += batch.num_rows
            if self.bar is not None and task is not None:
                self.bar.update(task, description=words.plural(self.rows, "row"))


@contextmanager
def row_bar() -> Iterator[CountedRows]:
    """Count rows, shown on a terminal."""
    console = stderr()
    if not console.is_terminal:
        yield CountedRows()
        return
    shown = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*shown, console=console, transient=True) as bar:
        yield CountedRows(bar)
