"""Durability of writes to local disk (fsync).

Files are synced before a call returns, so that a crash of the machine loses no acknowledged
write. The environment variable `LANCELAKE_FSYNC=off` disables this for speed.

The files of a change that is committed in the same call are only needed on disk when its version
gets its name. Within `until_named` they are synced in parallel, and `settle` waits for them.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import wraps
from typing import Any, TypeVar, cast

from lancelake.threads import Future, Pool

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])

# Disks write the files of several sync calls in parallel.
_FILES_AT_ONCE = 16
_choice = {"waits": os.environ.get("LANCELAKE_FSYNC", "on") != "off"}


def waits() -> bool:
    """Whether writes wait for the disk."""
    return _choice["waits"]


def settle(fd: int) -> None:
    """Sync an open file to disk, and wait for all syncs that `until_named` started."""
    _sync(fd)
    started = _started.get()
    if started is not None:
        started.wait()


def until_named(work: Callable[[], Result]) -> Result:
    """Do work in which `sync_file` and `sync_folder` return early; `settle` and its end wait.

    Threads take part if they run in the context of the work.
    """
    if _started.get() is not None:
        return work()
    started = _Started()
    # In a context of its own: a signal handler may raise before another could be restored.
    context = copy_context()
    context.run(_started.set, started)
    try:
        result = context.run(work)
        started.wait()
        return result
    finally:
        started.close()


def syncs_until_named(function: Function) -> Function:
    """Make each call of a function the work of `until_named`."""

    @wraps(function)
    def synced(*args: Any, **kwargs: Any) -> Any:
        return until_named(lambda: function(*args, **kwargs))

    return cast("Function", synced)


def sync_file(path: str | os.PathLike[str]) -> None:
    """Sync the bytes of a file to disk, unless that is disabled."""
    _sync_path(path, os.O_RDONLY | os.O_CLOEXEC)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Sync the names in a folder to disk, unless that is disabled."""
    _sync_path(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def make_folder(folder: str) -> None:
    """Create a folder and its parents durably."""
    try:
        os.mkdir(folder)  # noqa: PTH102  # paths are plain text here
    except FileNotFoundError:
        make_folder(os.path.dirname(folder))  # noqa: PTH120  # paths are plain text here
        make_folder(folder)
    except FileExistsError:
        # A link without a target exists too, and nothing can be created below it.
        if not _is_folder(folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a folder", folder) from None
    else:
        sync_folder(os.path.dirname(folder))  # noqa: PTH120  # paths are plain text here


def _is_folder(path: str) -> bool:
    # `os.path.isdir` takes a TimeoutError of a signal handler for an answer.
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116  # paths are plain text here
    except FileNotFoundError:
        return False


def _sync_path(path: str | os.PathLike[str], flags: int) -> None:
    if not waits():
        return
    started = _started.get()
    if started is None or not started.add(path, flags):
        _opened_and_synced(path, flags)


def _opened_and_synced(path: str | os.PathLike[str], flags: int) -> None:
    fd = os.open(path, flags)
    try:
        _sync(fd)
    finally:
        os.close(fd)


def _sync(fd: int) -> None:
    if _choice["waits"]:
        os.fsync(fd)


class _Started:
    """Syncs that run on threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._futures: list[Future[None]] = []
        self._is_closed = False

    def add(self, path: str | os.PathLike[str], flags: int) -> bool:
        """Start a sync; return False if the work has ended."""
        with self._lock:
            if self._is_closed:
                return False
            if self._pool is None:
                self._pool = Pool(_FILES_AT_ONCE)
            self._futures.append(self._pool.submit(_opened_and_synced, path, flags))
            return True

    def wait(self) -> None:
        """Wait until all syncs have ended; raise the error of one that failed, every time."""
        with self._lock:
            futures = tuple(self._futures)
        for future in futures:
            future.result()

    def close(self) -> None:
        """Wait until no sync runs."""
        with self._lock:
            self._is_closed = True
        if self._pool is not None:
            self._pool.close()


_started: ContextVar[_Started | None] = ContextVar("started syncs", default=None)


@contextmanager
def waiting(*, waits: bool) -> Iterator[None]:
    """Enable or disable syncing in all threads within a `with` block."""
    before = _choice["waits"]
    _choice["waits"] = waits
    try:
        yield
    finally:
        _choice["waits"] = before
