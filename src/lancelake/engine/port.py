"""Engine: runs tasks with results as bytes, here or in stages.

Pickles name classes of the release that wrote them, and results are encoded by its rules. A driver
and a worker of different releases therefore reject each other's messages before reading them.
The layout of the header, `loads` and `unseal` must not change between
releases: an older or newer process uses them to detect that the releases differ.
"""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from lancelake.errors import ReleaseMismatchError
from lancelake.threads import Future, Pool, aside, usable_cores
from lancelake.version import __version__


class Task(Protocol):
    """Part of a job: a frozen value that can be pickled and run in another process.

    A task may be run more than once, and by two workers at the same time; a run may
    leave nothing behind except files that no table refers to.
    """

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that a run takes."""

    def run(self) -> bytes:
        """Run the task and return its result for the driver."""


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

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in the order of the tasks.

        The first error ends the job and is raised as the task raised it.
        """


Advance = Callable[[int], None]
"""Called with how much more of a stage is done."""


class Stages:
    """Reports stages; without a listener it does nothing."""

    def __init__(self, description: str = "", report: Progress | None = None) -> None:
        self._description, self._report = description, report

    @contextmanager
    def stage(self, name: str, total: int = 1, unit: str = "rows") -> Iterator[Advance]:
        """Report that a stage begins, what is done of it, and that it ended.

        The total may be an estimate; a stage whose steps are not counted ends with its total. A
        stage that fails does not end.
        """
        done = 0

        def report(total: int) -> None:
            if self._report is not None:
                progress = JobProgress(
                    description=self._description, done=done, total=total, stage=name, unit=unit
                )
                self._report(progress)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if done < total:
                report(total)

        report(max(1, total))
        yield advance
        done = done or max(1, total)
        report(done)


_MAGIC = b"lancelake-wire\x00"
_FORMAT = 1
_END = b"\x00"
_LONGEST_HEADER = 256


def dumps(value: object) -> bytes:
    """Pickle a value for another process of the same release."""
    return seal(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


def loads(data: bytes) -> Any:
    """Read a value that another process wrote with `dumps`, or pickled and sealed."""
    return pickle.loads(unseal(data))


def seal(payload: bytes) -> bytes:
    """Prepend the wire format and the release to a payload."""
    return b"".join((_MAGIC, f"{_FORMAT} {__version__}".encode(), _END, payload))


def unseal(data: bytes) -> bytes:
    """Return the payload; raise when another release wrote it."""
    start = len(_MAGIC)
    end = data.find(_END, start, start + _LONGEST_HEADER)
    if not data.startswith(_MAGIC) or end < 0:
        raise ReleaseMismatchError(
            f"a message between the driver and a worker has no header that lancelake {__version__} "
            "knows",
            here=__version__,
        )
    header = data[start:end].decode(errors="replace")
    if header != f"{_FORMAT} {__version__}":
        number, _, release = header.partition(" ")
        raise ReleaseMismatchError(
            f"a message was written by lancelake {release} (wire format {number}), and this "
            f"process runs lancelake {__version__} (wire format {_FORMAT})",
            here=__version__,
            there=release,
        )
    return data[end + len(_END) :]


_DEFAULT_MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs tasks on threads; concurrent tasks share a memory budget.

    A task that needs more than the budget runs alone.
    """

    parallelism: int = field(default_factory=usable_cores)
    memory_bytes: int = _DEFAULT_MEMORY_BYTES

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in the order of the tasks."""
        if self.parallelism == 1 or len(job.tasks) == 1:
            yield from _one_by_one(job)
            return
        budget = _Budget(self.memory_bytes)
        tracker = _Tracker(job)
        with Pool(self.parallelism) as pool:
            waiting = deque(job.tasks)
            started: deque[Future[bytes]] = deque()
            try:
                while waiting or started:
                    # Results wait for their turn: no task starts whose result is not read soon.
                    while waiting and len(started) < 2 * self.parallelism:
                        started.append(pool.submit(_within, budget, waiting.popleft(), tracker))
                    yield started.popleft().result()
            finally:
                aside(budget.close)
                for future in started:
                    future.cancel()


def _one_by_one(job: Job) -> Iterator[bytes]:
    tracker = _Tracker(job)
    for task in job.tasks:
        result = task.run()
        tracker.ended()
        yield result


def _within(budget: _Budget, task: Task, tracker: _Tracker) -> bytes:
    size = task.memory_bytes
    if not budget.take(size):
        return b""
    try:
        result = task.run()
    finally:
        budget.give_back(size)
    tracker.ended()
    return result


class _Tracker:
    """Counts finished tasks and reports progress."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._done = 0
        self._lock = threading.Lock()

    def ended(self) -> None:
        with self._lock:
            self._done += 1
            if self._job.progress is not None:
                self._job.progress(
                    JobProgress(
                        description=self._job.description,
                        done=self._done,
                        total=len(self._job.tasks),
                    )
                )


class _Budget:
    """Memory that tasks reserve before they run and release afterwards."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._taken = 0
        self._changed = threading.Condition()  # noqa: TID251  # used aside
        self._is_closed = False

    def take(self, size: int) -> bool:
        """Wait until enough memory is free; return False if the job ended meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(size))
            if self._is_closed:
                return False
            self._taken += size
            return True

    def give_back(self, size: int) -> None:
        with self._changed:
            self._taken -= size
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _has_room(self, size: int) -> bool:
        return not self._taken or self._taken + size <= self._total
