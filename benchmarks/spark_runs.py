"""The Spark session of a benchmark, and the memory of its workers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.measure import Case, compare
from benchmarks.processes import print_result
from lancelake.spark import session

_CONF: dict[str, Any] = {
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": 2,
    "spark.driver.memory": "4g",
}
# As arguments; among the settings of Java it is a word of another one.
_DAEMON = b"-m\0lancelake.spark.tasks.daemon\0"


def quiet_session(**conf: Any) -> SparkSession:
    """Return a session of two cores that says nothing."""
    return session("local[2]", **_CONF, **conf)


def noop(frame: DataFrame) -> None:
    """Compute every row, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def report(cases: Iterable[Case], only: str = "") -> None:
    """Measure in this process, for `processes.measured` in another one."""
    for case in cases:
        if only in case.name:
            result, peak = compare(case), _worker_peak_mb()
            note = f"a Python worker up to {peak} MB" if peak else ""
            print_result(replace(result, note=note))


def _worker_peak_mb() -> int:
    """Return the peak resident size of the Python worker that needed most, now that all idle."""
    peaks = [0]
    for folder in _below(os.getpid()):
        with contextlib.suppress(OSError):
            if _DAEMON in (folder / "cmdline").read_bytes():
                status = (folder / "status").read_text()
                peaks.append(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
    return max(peaks)


def _below(pid: int) -> list[Path]:
    """Return the folders in /proc of all processes below one."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return [Path("/proc") / str(each) for each in found]
