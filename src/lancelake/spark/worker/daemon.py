"""The parent of Spark's Python workers, with all loaded that reading needs: workers are its forks.

Without it every worker loads the codec and the engines anew, and Spark ends a worker as soon as a
query stops reading early. Nothing that is loaded here starts threads which a fork would lose.
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
    """Load what can be loaded, then serve as Spark's own daemon does."""
    warnings.filterwarnings("ignore", message="lance is not fork-safe")
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A worker collects garbage after every task; what is loaded here is none, and looking through
    # it took longer than most tasks do.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
