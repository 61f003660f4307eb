"""Calls, pools and streams on threads in which no signal handler runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from types import FrameType
from typing import Any

import pytest

from lancelake import threads
from lancelake.threads import (
    Ahead,
    Pool,
    aside,
    aside_to_end,
    gathered,
    handlers_run_here,
    streamed,
)

PLACE: ContextVar[str] = ContextVar("PLACE", default="nowhere")


class HandlerError(Exception):
    """What the handler raises."""


@contextmanager
def raising_handler(has_run: threading.Event) -> Iterator[None]:
    def handler(_number: int, _frame: FrameType | None) -> None:
        has_run.set()
        raise HandlerError

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGUSR1)


def test_a_call_of_the_main_thread_runs_on_another() -> None:
    assert handlers_run_here()
    assert not aside(handlers_run_here)


def test_a_call_of_another_thread_stays_there() -> None:
    assert aside(lambda: aside(threading.get_ident) == threading.get_ident())


def test_a_call_has_the_context_of_its_caller() -> None:
    token = PLACE.set("here")
    try:
        assert aside(PLACE.get) == "here"
    finally:
        PLACE.reset(token)


def test_a_call_raises_its_error() -> None:
    with pytest.raises(ZeroDivisionError):
        aside(lambda: 1 // 0)


def test_a_handler_ends_the_wait_for_a_call() -> None:
    go_on = threading.Event()

    def call() -> None:
        interrupt()
        go_on.wait(60)

    with raising_handler(threading.Event()), pytest.raises(HandlerError):
        aside(call)
    go_on.set()


def test_a_call_to_its_end_has_ended_when_a_handler_raises() -> None:
    has_run = threading.Event()
    steps: list[str] = []

    def call() -> None:
        interrupt()
        has_run.wait(60)
        steps.append("ended")

    with raising_handler(has_run), pytest.raises(HandlerError):
        aside_to_end(call)
    assert steps == ["ended"]


def handled_after(steps: int, call: Callable[[], object]) -> bool:
    """Raise after some steps of the code in `threads`; return whether the call had that many."""
    left = steps

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != threads.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                raise HandlerError
        return trace

    sys.settrace(trace)
    try:
        call()
    except HandlerError:
        return True
    finally:
        sys.settrace(None)
    return False


def ends(call: Callable[[], object]) -> bool:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


def test_a_pool_closes_wherever_a_handler_ended_a_submission() -> None:
    for steps in count():
        pool = Pool(1)
        was_interrupted = handled_after(steps, partial(pool.submit, int))
        assert ends(pool.close), f"after {steps} steps"
        if not was_interrupted:
            break


def test_a_call_to_its_end_is_not_under_way_wherever_a_handler_ended_it() -> None:
    late: list[int] = []
    for steps in count():
        has_raised = threading.Event()

        def call(steps: int = steps, has_raised: threading.Event = has_raised) -> None:
            if has_raised.wait(0.002):
                late.append(steps)

        was_interrupted = handled_after(steps, partial(aside_to_end, call))
        has_raised.set()
        if not was_interrupted:
            break
    assert late == []


def test_a_pool_returns_results_in_order() -> None:
    with Pool(3) as pool:
        assert list(pool.map(lambda n, m: n * m, range(50), range(50))) == [
            n * n for n in range(50)
        ]


def test_a_pool_makes_a_bounded_number_of_calls_at_once() -> None:
    barrier = threading.Barrier(2)
    most, now, lock = 0, 0, threading.Lock()

    def call(number: int) -> int:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        if number < 2:
            barrier.wait(60)  # two calls do run at once
        with lock:
            now -= 1
        return number

    with Pool(2) as pool:
        assert sum(pool.map(call, range(40))) == sum(range(40))
    assert most == 2


def test_leaving_a_pool_waits_for_its_calls() -> None:
    done: list[int] = []
    with Pool(2) as pool:
        for number in range(20):
            pool.submit(done.append, number)
    assert sorted(done) == list(range(20))


def test_an_error_cancels_calls_that_have_not_begun() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        go_on.wait(60)

    with pytest.raises(HandlerError), Pool(1) as pool:
        pool.submit(call)
        waiting = pool.submit(call)
        begun.wait(60)
        threading.Thread(target=lambda: (waiting.wait(), go_on.set())).start()
        raise HandlerError
    with pytest.raises(CancelledError):
        waiting.result()


def test_the_calls_of_a_thread_are_made_within_a_block() -> None:
    entered: list[str] = []

    @contextmanager
    def block() -> Iterator[None]:
        entered.append("in")
        yield
        entered.append("out")

    with Pool(1, within=block) as pool:
        assert pool.submit(lambda: list(entered)).result()[-1] == "in"


def test_a_stream_is_produced_on_another_thread() -> None:
    assert list(streamed(lambda: iter([1, 2, 3]))) == [1, 2, 3]
    assert list(streamed(lambda: (handlers_run_here() for _ in range(2)))) == [False, False]


def test_all_items_are_gathered_on_another_thread() -> None:
    assert gathered(lambda: iter([1, 2, 3])) == [1, 2, 3]
    assert gathered(lambda: (handlers_run_here() for _ in range(1))) == [False]


def test_a_handler_ends_the_gathering() -> None:
    has_run, ended = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        try:
            interrupt()
            yield from range(1_000_000_000)
        finally:
            ended.set()

    with raising_handler(has_run), pytest.raises(HandlerError):
        gathered(items)
    assert ended.wait(60)


def test_a_stream_raises_the_error_that_ended_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ZeroDivisionError

    stream = iter(Ahead(items))
    assert next(stream) == 1
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_a_stream_runs_only_a_few_items_ahead() -> None:
    produced: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            produced.append(number)
            yield number

    ahead = Ahead(items, held=2)
    stream = iter(ahead)
    assert [next(stream) for _ in range(5)] == list(range(5))
    assert len(produced) <= 5 + 2 + 1
    ahead.stop()
    ahead.wait()
    assert len(produced) <= 5 + 2 + 1


def test_a_stream_without_a_reader_stops() -> None:
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            yield from range(1_000_000)
        finally:
            ended.set()

    ahead = Ahead(items)
    next(iter(ahead))
    del ahead
    assert ended.wait(60)


def test_a_forked_child_has_threads_of_its_own() -> None:
    assert aside(lambda: 1) == 1
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if aside(lambda: 2) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_calls_one_after_the_other_are_made_by_one_thread() -> None:
    barrier = threading.Barrier(4)
    with Pool(4) as pool:
        for _ in range(4):
            pool.submit(barrier.wait, 60)
    # Threads that were called for the pool may still come for these.
    for _ in range(64):
        aside(int)
    assert len({aside(threading.get_ident) for _ in range(20)}) == 1


def test_tasks_that_wait_for_each_other_all_get_a_thread() -> None:
    for size in (1, 7, 2, 40, 3, 40, 5) * 5:
        barrier = threading.Barrier(size)
        with Pool(size) as pool:
            assert sorted(pool.map(lambda _: barrier.wait(60), range(size))) == list(range(size))  # noqa: B023


def test_a_call_within_a_call_within_a_pool_gets_a_thread() -> None:
    def nested(depth: int) -> int:
        if not depth:
            return 1
        with Pool(2) as pool:
            return sum(pool.map(nested, [depth - 1, depth - 1]))

    assert aside(nested, 5) == 32
