"""Progress bar of a job on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
