"""What becomes of threads and locks in a forked process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeVar

from lancelake.errors import UnsupportedError

Item = TypeVar("Item")

_ACTION = 'Start processes with "spawn" or "forkserver" instead of "fork".'


def after_fork(action: Callable[[], None]) -> Callable[[], None]:
    """Run an action in every process that is forked from now on, before anything else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=action)
    return action


class NativeThreads:
    """The threads of a native library: a forked child lacks them, and would wait for them forever.

    A child whose parent has not started them starts its own.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid: int | None = None

    def started(self) -> None:
        """Note that this process has the threads, unless its parent started them."""
        if self._pid is None:
            self._pid = os.getpid()

    def ensure_alive(self) -> None:
        """Start the threads or raise where the parent had them."""
        self.started()
        if self._pid != os.getpid():
            msg = f"a forked process cannot use {self._what} that its parent used"
            raise UnsupportedError(msg, action=_ACTION)


def within_process(items: Iterator[Item], what: str) -> Iterator[Item]:
    """Yield the items, which no forked child can go on to make."""
    pid = os.getpid()
    while True:
        if os.getpid() != pid:
            msg = f"{what} that a parent process began cannot go on in a forked one"
            raise UnsupportedError(msg, action="Begin it in the process that reads it.")
        try:
            item = next(items)
        except StopIteration:
            return
        yield item
