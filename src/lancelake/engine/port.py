"""What is an engine? Something that runs the tasks of a job, wherever that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class Task(Protocol):
    """A piece of a job: a frozen value that can be pickled and run in another process.

    A task may be run more than once, and by two workers at the same time; each run must leave
    nothing behind but files that no table refers to.
    """

    @property
    def memory_bytes(self) -> int:
        """About how much memory a run takes."""
        ...

    def run(self) -> bytes:
        """Do the work and return what the driver needs to know of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """How far a job is."""

    description: str
    done: int
    total: int


Progress = Callable[[JobProgress], None]
"""Told after every task that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Tasks that belong together; `description` is what people see while they run."""

    description: str
    tasks: Sequence[Task]
    progress: Progress | None = None


class Engine(Protocol):
    """Runs jobs."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once, so that a planner can cut work into as many."""
        ...

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in the order of the tasks.

        The first error ends the job and is raised as the task raised it.
        """
        ...
