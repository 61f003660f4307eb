"""Threads that no signal handler can damage.

Python runs signal handlers in the main thread, between any two of its steps and inside of native
code that asks for them, and lets them raise. Locks, conditions, queues, pools and threads that
are written in Python are then left half changed, and native code may take the exception for its
end. So such work is done on threads of this module, where no handler runs, and the main thread
only puts into and takes from queues that are native, each in one step. What does not survive a fork
is here as well.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import wraps
from itertools import takewhile
from math import inf
from queue import Empty, SimpleQueue
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from lancelake.errors import InvalidRequestError, UnsupportedError

Item = TypeVar("Item")

SPAWN = 'Start processes with "spawn" or "forkserver" instead of "fork".'
"""Advice where a forked process cannot do what was asked."""


def usable_cores() -> int:
    """Return how many cores this process may run on, which `taskset` and containers restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def before_fork(action: Callable[[], None]) -> Callable[[], None]:
    """Register an action that runs in this process before each fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=action)
    return action


def after_fork(action: Callable[[], None]) -> Callable[[], None]:
    """Register an action that runs first in every process forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)
    return action


class NativeThreads:
    """Threads of a native library, which a forked child does not have and would wait for.

    A child whose parent has not started them can start its own.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid: int | None = None

    def started(self) -> None:
        """Record that this process has the threads, unless its parent started them."""
        if self._pid is None:
            self._pid = os.getpid()

    def ensure_alive(self) -> None:
        """Record the threads, or raise in a forked process whose parent has them."""
        self.started()
        if self._pid != os.getpid():
            msg = f"a forked process cannot use {self._what} that its parent has used"
            raise UnsupportedError(msg, action=SPAWN)


class OwnStream(Generic[Item]):
    """The same items; raises when the iteration is continued in a forked child or after an error.

    A generator that raised would seem to end when it is asked again.
    """

    def __init__(self, items: Iterator[Item], what: str) -> None:
        self._items: Iterator[Item] | None = items
        self._what = what
        self._pid = os.getpid()
        # Not the error: its traceback would keep this stream in a cycle through native code.
        self._failure = ""

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if os.getpid() != self._pid:
            msg = (
                f"{self._what} started by a parent process cannot be continued in a forked process"
            )
            raise UnsupportedError(msg, action="Start it in the process that reads it.")
        if self._items is None:
            msg = f"{self._what} cannot be continued after an error: {self._failure}"
            raise InvalidRequestError(msg, action="Start it again.")
        try:
            return next(self._items)
        except StopIteration:
            raise
        except BaseException as error:
            self._items, self._failure = None, f"{type(error).__name__}: {error}"
            raise


Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

_MOST_IDLE = 32
_EXIT_S = 5.0
_HELD = 2
# How late a handler runs at most.
_LOOK_S = 0.1


def aside(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a function where no signal handler runs.

    When a handler raises meanwhile, its exception is raised at once, and the result is lost.
    """
    if not handlers_run_here():
        return function(*args, **kwargs)
    return _started(function, *args, **kwargs).result()


def aside_to_end(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a function where no signal handler runs; it has ended when this returns or raises."""
    if not handlers_run_here():
        return function(*args, **kwargs)
    task = Future(lambda: function(*args, **kwargs))
    try:
        _crew.run(task)
        return task.result()
    except BaseException:
        if not task.cancel():
            task.wait()
        raise


def driven_aside(
    function: Callable[Arguments, Result],
) -> Callable[Arguments, Result]:
    """Make each call of a function one where no signal handler runs."""

    @wraps(function)
    def driven(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return aside(function, *args, **kwargs)

    return driven


def driven_to_end(
    function: Callable[Arguments, Result],
) -> Callable[Arguments, Result]:
    """Make each call of a function one that has ended when it returns or raises."""

    @wraps(function)
    def driven(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return aside_to_end(function, *args, **kwargs)

    return driven


def streamed(items: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Yield items that are produced where no signal handler runs, a few of them ahead."""
    if not handlers_run_here():
        yield from items()
        return
    ahead = Ahead(items)
    try:
        yield from ahead
    finally:
        ahead.stop()


def gathered(items: Callable[[], Iterable[Item]]) -> list[Item]:
    """Return all items, which are produced where no signal handler runs."""
    stopped: list[bool] = []

    def gather() -> list[Item]:
        return list(takewhile(lambda _: not stopped, items()))

    try:
        return aside(gather)
    except BaseException:
        stopped.append(True)
        raise


class Future(Generic[Result]):
    """A call on another thread, in a copy of the context of the code that starts it."""

    __slots__ = ("_call", "_context", "_error", "_gate", "_has_ended", "_value")

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call: Callable[[], Result] | None = call
        self._context = copy_context()
        self._error: BaseException | None = None
        self._value: Result | None = None
        self._has_ended = False
        self._gate = _thread.allocate_lock()
        self._gate.acquire()

    def result(self) -> Result:
        """Wait for the end, and return the result or raise the error."""
        self.wait()
        if self._error is None:
            return cast("Result", self._value)
        try:
            raise self._error
        finally:
            self = None  # type: ignore[assignment]  # noqa: PLW0642  # the traceback keeps this frame

    def wait(self, timeout_s: float = inf) -> None:
        """Wait for the end."""
        waited_s = 0.0
        # An exception between acquiring and releasing leaves the gate closed behind the end.
        while not self._has_ended and waited_s < timeout_s:
            # A signal may wake another thread, but its handler waits for this one.
            if self._gate.acquire(timeout=_LOOK_S):
                self._gate.release()
            waited_s += _LOOK_S

    def cancel(self) -> bool:
        """Do not start the call any more; return whether it had not begun."""
        call, self._call = self._call, None
        return call is not None

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        self.make()
        self.end()

    def make(self) -> None:
        """Make the call, unless it was cancelled; nobody learns of its end."""
        call, self._call = self._call, None
        try:
            if call is None:
                raise CancelledError
            self._value = self._context.run(call)
        except BaseException as error:  # noqa: BLE001  # raised by `result`
            self._error = error
        # Free what the call holds before anyone learns of its end; the error keeps this frame.
        del call

    def end(self) -> None:
        """Let those who wait go on."""
        self._has_ended = True
        self._gate.release()


class Pool:
    """Bounded number of calls at the same time, on threads that are shared.

    Leaving the `with` block waits for all calls; after an error, calls that have not begun are
    cancelled. With `within`, each thread makes its calls inside of such a block.
    """

    def __init__(
        self, size: int, *, within: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> None:
        self._size = size
        self._within = within
        self._waiting: SimpleQueue[Future[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._begun: set[Future[Any]] = set()

    def submit(
        self,
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Future[Result]:
        """Start a call, at the latest when earlier ones have ended."""
        task = Future(lambda: function(*args, **kwargs))
        self._waiting.put(task)
        if self._threads < self._size:
            _crew.run(Future(self._serve))
        return task

    def map(
        self, function: Callable[..., Result], *items: Iterable[Any]
    ) -> Generator[Result, None, None]:
        """Start calls with all the items, and return the results in order."""
        tasks = deque(self.submit(function, *each) for each in zip(*items, strict=False))
        return _results(tasks)

    def close(self, *, cancels: bool = False) -> None:
        """Wait for the calls; cancel those that have not begun if so asked."""
        if cancels:
            with contextlib.suppress(Empty):
                while True:
                    task = self._waiting.get_nowait()
                    task.cancel()
                    task.run()
        elif not self._waiting.empty():
            # All others begin before it, also one whose `submit` a handler ended half-way.
            self.submit(lambda: None).wait()
        with self._lock:
            begun = list(self._begun)
        for task in begun:
            task.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close(cancels=kind is not None)

    def _serve(self) -> None:
        """Make the calls that wait, unless enough threads do."""
        with self._within():
            while self._may_serve():
                while (task := self._next()) is not None:
                    task.run()
                    with self._lock:
                        self._begun.discard(task)
                    del task
                # One that came before this thread was discounted has started no other.
                if self._waiting.empty():
                    return

    def _may_serve(self) -> bool:
        with self._lock:
            may = self._threads < self._size
            self._threads += may
            return may

    def _next(self) -> Future[Any] | None:
        with self._lock:
            try:
                task = self._waiting.get_nowait()
            except Empty:
                self._threads -= 1
                return None
            self._begun.add(task)
            return task


def _results(tasks: deque[Future[Result]]) -> Generator[Result, None, None]:
    try:
        while tasks:
            yield tasks.popleft().result()
    finally:
        for task in tasks:
            task.cancel()


class Ahead(Generic[Item]):
    """Items that another thread produces, a few ahead of the consumer, which may stop it."""

    def __init__(self, items: Callable[[], Iterable[Item]], *, held: int = _HELD) -> None:
        self._producer = _Producer(items, held)
        self._task = Future(self._producer.run)
        _crew.run(self._task)

    def __iter__(self) -> Iterator[Item]:
        """Return the items in order, or raise the error that ended them."""
        room = self._producer.room
        while not isinstance(item := self._next(), _End):
            room.put(None)
            yield item
        if item.error is not None:
            raise item.error

    def _next(self) -> Item | _End:
        while True:
            try:
                return self._producer.produced.get(timeout=_LOOK_S)
            except Empty:
                continue

    def stop(self) -> None:
        """Let the thread stop."""
        self._producer.stop()

    def wait(self) -> None:
        """Wait for the thread to stop."""
        self._task.wait()

    def __del__(self) -> None:
        self.stop()


class _End:
    """End of the items, with the error if there was one."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Producer(Generic[Item]):
    """What the thread of an `Ahead` does; it does not keep the object of the consumer alive."""

    def __init__(self, items: Callable[[], Iterable[Item]], held: int) -> None:
        self.produced: SimpleQueue[Item | _End] = SimpleQueue()
        self.room: SimpleQueue[None] = SimpleQueue()
        self._items = items
        self._is_stopped = False
        for _ in range(held):
            self.room.put(None)

    def run(self) -> None:
        """Produce until the items end or the consumer stops."""
        with _crew.stopping(self.stop):
            try:
                for item in self._items():
                    self.room.get()
                    if self._is_stopped:
                        return
                    self.produced.put(item)
            except BaseException as error:  # noqa: BLE001  # handed over to the consumer
                self.produced.put(_End(error))
            else:
                self.produced.put(_End())

    def stop(self) -> None:
        """Stop before the next item."""
        self._is_stopped = True
        self.room.put(None)


def _started(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Future[Result]:
    task = Future(lambda: function(*args, **kwargs))
    _crew.run(task)
    return task


def handlers_run_here() -> bool:
    """Whether signal handlers run in the thread of the caller."""
    return _thread.get_ident() == _main


class _Crew:
    """Threads of this process, most of which rest until more tasks than threads wait.

    So that one thread makes the calls of a caller that waits for each: its caches are warm.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Future[Any]] = SimpleQueue()
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._resting = 0
        self._running: set[Future[Any]] = set()
        self._stops: set[Callable[[], None]] = set()

    def run(self, task: Future[Any]) -> None:
        """Run a task."""
        self._tasks.put(task)
        self._call_another()

    @contextlib.contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Note how a task can be stopped at the end of the process."""
        self._stops.add(stop)
        try:
            yield
        finally:
            self._stops.discard(stop)

    def end(self) -> None:
        """Stop tasks, because threads must not be killed inside of the codec."""
        for stop in list(self._stops):
            stop()
        for task in list(self._running):
            task.wait(_EXIT_S)

    def forget(self) -> None:
        """Start without threads in a forked child."""
        self.__init__()  # type: ignore[misc]

    def _add(self) -> None:
        with self._lock:
            self._idle += 1
        try:
            threading.Thread(target=self._work, name="lancelake", daemon=True).start()  # noqa: TID251
        except RuntimeError:  # the process ends
            with self._lock:
                self._idle -= 1

    def _call_another(self) -> None:
        """Get one more thread to take tasks, if more tasks than threads wait."""
        # A thread counts as idle a little longer than it is, and as resting; so each that has
        # taken a task asks again.
        if self._tasks.qsize() <= self._idle:
            return
        if self._resting:
            self._calls.put(None)
            return
        try:
            # A native function is one step; other threads are started where no handler runs.
            _thread.start_new_thread(self._add, ())
        except RuntimeError:  # no more are allowed: those that are there take it
            if not (self._running or self._idle):
                raise

    def _work(self) -> None:
        is_needed = True
        while is_needed:
            task = self._tasks.get()
            with self._lock:
                self._idle -= 1
                self._running.add(task)
            self._call_another()
            task.make()
            # Idle before anyone learns of the end, whose next task would call another.
            rests = self._leave(task)
            task.end()
            del task
            is_needed = not rests or self._rest()

    def _leave(self, task: Future[Any]) -> bool:
        """Become idle; return whether another thread is already."""
        with self._lock:
            self._running.discard(task)
            rests = self._idle > 0
            self._idle += not rests
            return rests

    def _rest(self) -> bool:
        """Wait until this thread is called; return False if enough others rest."""
        with self._lock:
            if self._resting >= _MOST_IDLE:
                return False
            self._resting += 1
        self._calls.get()
        with self._lock:
            self._resting -= 1
            self._idle += 1
        return True


@after_fork
def _begin_again() -> None:
    """Start without threads in a forked child, whose main thread is the one that forked."""
    global _main  # noqa: PLW0603
    _main = _thread.get_ident()
    _crew.forget()


_main = threading.main_thread().ident
_crew = _Crew()
atexit.register(_crew.end)
