"""Local engine: runs tasks on threads of this process within a memory budget."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from lancelake.engine.port import Job, JobProgress, Task

_DEFAULT_MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Runs tasks on threads; concurrent tasks share a memory budget.

    A task that needs more than the budget runs alone.
    """

    parallelism: int = field(default_factory=lambda: os.cpu_count() or 1)
    memory_bytes: int = _DEFAULT_MEMORY_BYTES

    def run(self, job: Job) -> Iterator[bytes]:
        """Yield the result of every task in the order of the tasks."""
        if self.parallelism == 1 or len(job.tasks) == 1:
            yield from _one_by_one(job)
            return
        budget = _Budget(self.memory_bytes)
        tracker = _Tracker(job)
        with ThreadPoolExecutor(self.parallelism, thread_name_prefix="task") as pool:
            waiting = deque(job.tasks)
            started: deque[Future[bytes]] = deque()
            try:
                while waiting or started:
                    # Results wait for their turn: no task starts whose result is not read soon.
                    while waiting and len(started) < 2 * self.parallelism:
                        started.append(pool.submit(_within, budget, waiting.popleft(), tracker))
                    yield started.popleft().result()
            finally:
                budget.close()
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
        self._changed = threading.Condition()
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
