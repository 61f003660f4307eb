"""Daemon process of Spark's Python workers with preloaded modules; workers are its forks.

Without it every worker loads the codec and the engines again, and Spark ends a worker as soon as a
query stops reading early. No module loaded here starts threads, which a fork would lose.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import warnings

from pyspark.daemon import manager

_LOADED = (
    "pyspark.worker",
    "lancelake.spark.reading.partition",
    "lancelake.spark.writing.task_writer",
)


def main() -> None:
    """Preload modules, then run Spark's own daemon."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A worker collects garbage after every task; preloaded objects are never garbage, and scanning
    # them took longer than most tasks.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
