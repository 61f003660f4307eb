"""The engine of one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from lancelake.engine.port import Job, JobProgress, LocalEngine


@dataclass(frozen=True)
class Work:
    action: Callable[[], bytes]
    memory_bytes: int = 0

    def run(self) -> bytes:
        return self.action()


def job(*actions: Callable[[], bytes], size: int = 0) -> Job:
    return Job(description="test", tasks=[Work(action, size) for action in actions])


def test_tasks_run_on_the_cores_that_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert LocalEngine().parallelism == 1


@pytest.mark.parametrize("parallelism", [1, 2, 7])
def test_results_come_in_the_order_of_the_tasks(parallelism: int) -> None:
    actions = [lambda i=i: str(i).encode() for i in range(40)]
    engine = LocalEngine(parallelism=parallelism)
    assert list(engine.run(job(*actions))) == [str(i).encode() for i in range(40)]


def test_a_job_without_tasks_has_no_results() -> None:
    assert list(LocalEngine(parallelism=2).run(job())) == []


def test_tasks_run_beside_each_other() -> None:
    barrier = threading.Barrier(2, timeout=30)

    def meet() -> bytes:
        barrier.wait()
        return b"met"

    assert list(LocalEngine(parallelism=2).run(job(meet, meet))) == [b"met", b"met"]


def test_the_error_of_a_task_is_raised_as_it_is() -> None:
    def fail() -> bytes:
        raise KeyError("seven")

    with pytest.raises(KeyError, match="seven"):
        list(LocalEngine(parallelism=2).run(job(lambda: b"", fail)))


def test_no_task_starts_after_an_error() -> None:
    started: list[int] = []

    def fail() -> bytes:
        raise ValueError("first")

    def note() -> bytes:
        started.append(1)
        return b""

    with pytest.raises(ValueError, match="first"):
        list(LocalEngine(parallelism=2).run(job(fail, *[note] * 50)))
    assert len(started) < 50


def test_tasks_that_run_at_once_stay_within_the_memory() -> None:
    lock = threading.Lock()
    running = most = 0

    def work() -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        with lock:
            running -= 1
        return b""

    engine = LocalEngine(parallelism=4, memory_bytes=100)
    list(engine.run(job(*[work] * 30, size=60)))
    assert most == 1


def test_a_task_larger_than_the_memory_runs() -> None:
    engine = LocalEngine(parallelism=2, memory_bytes=10)
    assert list(engine.run(job(lambda: b"a", lambda: b"b", size=1000))) == [b"a", b"b"]


def test_progress_is_reported_after_every_task() -> None:
    told: list[JobProgress] = []
    tasks = [Work(lambda: b"")] * 3
    list(LocalEngine(parallelism=2).run(Job(description="d", tasks=tasks, progress=told.append)))
    assert [(t.done, t.total) for t in told] == [(1, 3), (2, 3), (3, 3)]
