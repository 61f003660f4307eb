"""Benchmarks of small commits: on small and large tables, after many commits, and concurrently."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Case, Comparison
from lancelake.storage import disk_sync

LIBRARIES: dict[str, Any] = {"ours": lancelake, "official": lance}
_ROW = pa.table({"a": [1], "b": ["x"]})
_WORK = tables.ROOT / "commits"
_WRITERS = 4
_COMMITS_EACH = 50
_CONTENDER = """
import importlib, sys
import pyarrow as pa
library, uri, count = importlib.import_module(sys.argv[1]), sys.argv[2], int(sys.argv[3])
row = pa.table({"a": [1], "b": ["x"]})
library.dataset(uri)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(count):
    library.write_dataset(row, uri, mode="append")
print("done", flush=True)
"""


def cases() -> Iterator[Case]:
    """Yield the comparisons of single commits; unless it is said, neither waits for the disk."""
    for label, target, make in (
        ("a table of one row", 1.5, lambda: None),
        ("10,000 fragments", 1.2, lambda: tables.many_fragments(10_000)),
    ):
        uris = {name: _table(name, make()) for name in LIBRARIES}
        for name, work in (("append one row", _append), ("change the config", _configure)):
            yield _case(f"{name}, {label}", target, uris, work, waits=False)
            yield _case(f"{name}, {label}, ours waits", target, uris, work, waits=True)


def comparisons(rounds: int = 3) -> Iterator[Comparison]:
    """Yield what takes many commits to see."""
    yield from _in_a_row(1500)
    for fsync, label in (("off", ""), ("on", ", ours waits")):
        ours, official = [], []
        for _ in range(rounds):
            ours.append(_contended("lancelake.pylance", "ours", fsync))
            official.append(_contended("lance", "official", fsync))
        yield Comparison(
            name=f"a commit among {_WRITERS} contending appenders{label}",
            target=1.0,
            ours_s=statistics.median(ours),
            official_s=statistics.median(official),
            rounds=rounds,
        )


def _case(
    name: str,
    target: float,
    uris: dict[str, str],
    work: Callable[[Any, str], None],
    *,
    waits: bool,
) -> Case:
    def ours() -> None:
        with disk_sync.waiting(waits=waits):
            work(LIBRARIES["ours"], uris["ours"])

    return Case(
        name=name,
        target=target,
        ours=ours,
        official=lambda: work(LIBRARIES["official"], uris["official"]),
        rounds=31,
    )


def _append(library: Any, uri: str) -> None:
    library.write_dataset(_ROW, uri, mode="append")


def _configure(library: Any, uri: str) -> None:
    library.dataset(uri).update_config({"number": "1"})


def _table(name: str, source: str | None) -> str:
    """Return a table to change, a copy of `source` or a new one."""
    path = _WORK / f"{name}-{'new' if source is None else Path(source).stem}.lance"
    shutil.rmtree(path, ignore_errors=True)
    if source is None:
        lance.write_dataset(_ROW, str(path))
    else:
        shutil.copytree(source, path)
    return str(path)


def _in_a_row(count: int) -> Iterator[Comparison]:
    """Append again and again: how long it takes, and how much longer at the end."""
    times: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    uris = {name: _table(name, None) for name in LIBRARIES}
    for _ in range(count):
        for name, library in LIBRARIES.items():
            start = time.perf_counter()
            with disk_sync.waiting(waits=False):
                _append(library, uris[name])
            times[name].append(time.perf_counter() - start)
    tenth = count // 10
    growth = {
        name: statistics.median(each[-tenth:]) - statistics.median(each[:tenth])
        for name, each in times.items()
    }
    totals = {name: sum(each) for name, each in times.items()}
    for name, target, of in (
        (f"{count:,} small appends in a row", 1.5, totals),
        (f"growth of an append over {count:,}", 1.0, growth),
    ):
        yield Comparison(
            name=name, target=target, ours_s=of["ours"], official_s=of["official"], rounds=1
        )


def _contended(library: str, name: str, fsync: str) -> float:
    """Return the seconds per commit of processes that all append to one table."""
    uri = _table(name, None)
    arguments = [sys.executable, "-c", _CONTENDER, library, uri, str(_COMMITS_EACH)]
    options: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "text": True,
        "env": {**os.environ, "LANCELAKE_FSYNC": fsync},
    }
    processes: list[Any] = [subprocess.Popen(arguments, **options) for _ in range(_WRITERS)]
    for process in processes:
        process.stdout.readline()
    start = time.perf_counter()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.stdout.readline() for process in processes]
    passed_s = time.perf_counter() - start
    for process in processes:
        process.wait()
    if answers != ["done\n"] * _WRITERS:
        msg = f"{library}: an appender failed"
        raise AssertionError(msg)
    return passed_s / (_WRITERS * _COMMITS_EACH)
