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
from zipimport import zipimporter

from pyspark import daemon

from lancelake.core.values.tasks import official, preload_codec

_LOADED = (
    "pyspark.worker",
    "lancelake.spark.tasks.read_plan",
    "lancelake.spark.jobs.write_plan",
)
# Number of the setting in malloc.h of glibc, and its value.
_ARENA_MAX = -8
_ARENAS = 2

Worker = Callable[[socket, bool], int]


def main() -> None:
    """Preload modules, then run Spark's own daemon."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    preload()
    # A worker collects garbage after every task; preloaded objects are never garbage, and scanning
    # them took longer than most tasks.
    gc.freeze()
    keep_files_with_spark(os.environ)
    share_arenas(os.environ)
    archives = loaded_archives()
    keep_archives_read(archives)
    daemon.worker = freezing(quiet(daemon.worker), archives)  # type: ignore[assignment]
    daemon.manager()


def preload() -> None:
    """Import the modules that reads and writes of workers need; a missing one fails when used."""
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        preload_codec()


def keep_files_with_spark(environment: Mapping[str, str]) -> None:
    """Create temporary files of workers in a folder that Spark removes: it kills its workers."""
    folder = environment.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    if folder and Path(folder).is_dir():
        official.use_parent(Path(folder))


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


def loaded_archives() -> frozenset[str]:
    """Return the archives on the path of modules: those of Spark, and of submitted packages."""
    importers = sys.path_importer_cache.values()
    return frozenset(each.archive for each in importers if isinstance(each, zipimporter))


def keep_archives_read(archives: frozenset[str]) -> None:
    """Keep importers from reading the lists of files of these archives again.

    Spark 4.1 lets them do so before each task, once for each package: 0.1 s.
    """
    for each in sys.path_importer_cache.values():
        if isinstance(each, zipimporter) and each.archive in archives:
            each.invalidate_caches = _nothing  # type: ignore[method-assign]


def _nothing() -> None:
    pass


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


def freezing(worker: Worker, archives: frozenset[str] = frozenset()) -> Worker:
    """Return a worker that excludes the modules which a task loaded from garbage collection.

    Packages of the archives among them are not listed again either.
    """
    loaded = len(sys.modules)

    @functools.wraps(worker)
    def run(sock: socket, authenticated: bool) -> int:
        nonlocal loaded
        code = worker(sock, authenticated)
        if len(sys.modules) > loaded:
            loaded = len(sys.modules)
            gc.collect()
            gc.freeze()
            keep_archives_read(archives)
        return code

    return run


if __name__ == "__main__":
    main()
