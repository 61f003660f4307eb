"""Threads and forks: pools in the caller's context, iterators a forked process cannot use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from lancelake.errors import UnsupportedError

Item = TypeVar("Item")
Arguments = ParamSpec("Arguments")

SPAWN = 'Start processes with "spawn" or "forkserver" instead of "fork".'
"""Advice where a forked process cannot do what was asked."""


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


class ContextThreadPool(ThreadPoolExecutor):
    """Thread pool whose tasks run in a copy of the context of the code that submits them."""

    def submit(
        self, fn: Callable[Arguments, Item], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Item]:
        """Start a task."""
        context = copy_context()
        return super().submit(lambda: context.run(fn, *args, **kwargs))


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


def within_process(items: Iterator[Item], what: str) -> Iterator[Item]:
    """Yield the items; raise when the iteration is continued in a forked child."""
    pid = os.getpid()
    while True:
        if os.getpid() != pid:
            msg = f"{what} started by a parent process cannot be continued in a forked process"
            raise UnsupportedError(msg, action="Start it in the process that reads it.")
        try:
            item = next(items)
        except StopIteration:
            return
        yield item
