"""Interface of engines, which run the tasks of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class Task(Protocol):
    """Part of a job: a frozen value that can be pickled and run in another process.

    A task may be run more than once, and by two workers at the same time; a run may
    leave nothing behind except files that no table refers to.
    """

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""
        ...

    def run(self) -> bytes:
        """Run the task and return its result for the driver."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """Progress of a job."""

    description: str
    done: int
    total: int
    stage: str = ""
    """Stage of a job that has several one after the other."""
    unit: str = "rows"


Progress = Callable[[JobProgress], None]
"""Called after each finished task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Tasks that belong together; `description` is shown while they run."""

    description: str
    tasks: Sequence[Task]
    progress: Progress | None = None


class Engine(Protocol):
    """Runs the tasks of jobs."""

    @property
    def parallelism(self) -> int:
        """Number of concurrent tasks, for planners that split work into tasks."""
        ...

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in the order of the tasks.

        The first error ends the job and is raised as the task raised it.
        """
        ...
