"""Daemon process of Spark's Python workers with preloaded modules; workers are its forks.

Without it every worker loads the codec and the engines again, and Spark ends a worker as soon as a
query stops reading early. No module loaded here starts threads, which a fork would lose.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from socket import socket

from pyspark import daemon

from lancelake.data.codec import spool

_LOADED = (
    "pyspark.worker",
    "lancelake.spark.reading.partition",
    "lancelake.spark.writing.task_writer",
)
# Number of the setting in malloc.h of glibc, and its value.
_ARENA_MAX = -8
_ARENAS = 2

Worker = Callable[[socket, bool], int]


def main() -> None:
    """Preload modules, then run Spark's own daemon."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A worker collects garbage after every task; preloaded objects are never garbage, and scanning
    # them took longer than most tasks.
    gc.freeze()
    keep_files_with_spark(os.environ)
    share_arenas(os.environ)
    daemon.worker = freezing(quiet(daemon.worker))  # type: ignore[assignment]
    daemon.manager()


def keep_files_with_spark(environment: Mapping[str, str]) -> None:
    """Create temporary files of workers in a folder that Spark removes: it kills its workers."""
    folder = environment.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    if folder and Path(folder).is_dir():
        spool.use_parent(Path(folder))


def share_arenas(environment: Mapping[str, str]) -> bool:
    """Let the threads of a worker share a few heaps of glibc; return whether they do.

    By default there are eight for each core, and none uses the free memory of another: sorting
    needs a quarter more. A limit in the environment stays.
    """
    if "MALLOC_ARENA_MAX" in environment:
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_ARENA_MAX, _ARENAS))
    except (OSError, AttributeError):
        # Another C library.
        return False


def quiet(worker: Worker) -> Worker:
    """Return a worker that ends without a traceback if Spark stopped reading its answer.

    This happens whenever a limit ends a read early.
    """

    @functools.wraps(worker)
    def run(sock: socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return run


def freezing(worker: Worker) -> Worker:
    """Return a worker that excludes the modules which a task loaded from garbage collection.

    Those of the codec start threads and cannot be preloaded.
    """
    known = len(sys.modules)

    @functools.wraps(worker)
    def run(sock: socket, authenticated: bool) -> int:
        nonlocal known
        code = worker(sock, authenticated)
        if len(sys.modules) > known:
            known = len(sys.modules)
            gc.collect()
            gc.freeze()
        return code

    return run


if __name__ == "__main__":
    main()
