"""Benchmarks of row changes with concurrent writers that append at a steady rate."""

from __future__ import annotations

import itertools
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Comparison
from lancelake.storage import disk_sync

LOADS = tuple(itertools.product((1, 2), (10, 20)))
"""How many appenders, and how often each of them appends in a second."""

TARGET = 2.0
_SECONDS = 9.0
_ROWS = 100_000
_MATCHED = _NEW = 50
_WORK = tables.ROOT / "contention"
_LIBRARIES: dict[str, Any] = {"lancelake.pylance": lancelake, "lance": lance}
_APPENDER = """
import importlib, sys, time
import pyarrow as pa
library, uri = importlib.import_module(sys.argv[1]), sys.argv[2]
pause, first = 1 / float(sys.argv[3]), int(sys.argv[4])
library.dataset(uri)
print("ready", flush=True)
due = time.perf_counter()
for key in range(first, first + 1_000_000):
    library.write_dataset(pa.table({"id": [key], "v": [key]}), uri, mode="append")
    due = max(due + pause, time.perf_counter() - pause)
    time.sleep(max(0.0, due - time.perf_counter()))
"""

Change = Callable[[int], None]


@dataclass(frozen=True, kw_only=True)
class Landed:
    """How long each change took that landed, and how many failed."""

    seconds: tuple[float, ...]
    failed: int

    @property
    def median_s(self) -> float:
        """Median of those that landed; without any, all the time there was."""
        return statistics.median(self.seconds) if self.seconds else _SECONDS

    def __str__(self) -> str:
        return f"{len(self.seconds)} landed, {self.failed} failed"


def comparisons() -> Iterator[Comparison]:
    """Yield upserts and updates beside appenders; each library appends to a table of its own."""
    for name, change in (("upsert", _upsert), ("update", _update)):
        for appenders, rate in LOADS:
            landed = [_measured(library, change, appenders, rate) for library in _LIBRARIES]
            yield compared(name, appenders, rate, *landed)


def compared(name: str, appenders: int, rate: int, ours: Landed, peer: Landed) -> Comparison:
    """Return both medians with what landed."""
    return Comparison(
        name=f"{name} beside {appenders} x {rate} appends/s",
        target=TARGET,
        ours_s=ours.median_s,
        official_s=peer.median_s,
        rounds=len(ours.seconds),
        note=f"ours {ours}; peer {peer}",
    )


def measured(change: Change, *, seconds: float = _SECONDS) -> Landed:
    """Make one change after the other for a while."""
    taken: list[float] = []
    failed = 0
    end = time.perf_counter() + seconds
    for number in itertools.count():
        start = time.perf_counter()
        if start >= end:
            return Landed(seconds=tuple(taken), failed=failed)
        try:
            change(number)
        except OSError as error:
            print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
        else:
            taken.append(time.perf_counter() - start)
    raise AssertionError


def fresh_table(library: str, **options: Any) -> str:
    """Write the table that is changed."""
    ids = pa.array(range(_ROWS), pa.int64())
    place = _WORK / f"{library}.lance"
    shutil.rmtree(place, ignore_errors=True)
    _LIBRARIES[library].write_dataset(pa.table({"id": ids, "v": ids}), str(place), **options)
    return str(place)


@contextmanager
def appending(library: str, uri: str, appenders: int, rate: int) -> Iterator[None]:
    """Let processes append single rows with keys of their own."""
    firsts = [(number + 1) * 1_000_000_000 for number in range(appenders)]
    arguments = [sys.executable, "-c", _APPENDER, library, uri, str(rate)]
    env = {**os.environ, "LANCELAKE_FSYNC": "off"}
    processes = [
        subprocess.Popen([*arguments, str(first)], stdout=subprocess.PIPE, text=True, env=env)
        for first in firsts
    ]
    try:
        for process in processes:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                msg = f"{library}: an appender did not start"
                raise RuntimeError(msg)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _measured(
    library: str, change: Callable[[Any, int], None], appenders: int, rate: int
) -> Landed:
    uri = fresh_table(library)
    with appending(library, uri, appenders, rate), disk_sync.waiting(waits=False):
        return measured(lambda number: change(_LIBRARIES[library].dataset(uri), number))


def keys(number: int) -> pa.Array:
    """Return the keys of an upsert: some that are there, and as many that are new."""
    old, new = number * _MATCHED % _ROWS, _ROWS + number * _NEW
    return pa.array([*range(old, old + _MATCHED), *range(new, new + _NEW)], pa.int64())


def _upsert(dataset: Any, number: int) -> None:
    ids = keys(number)
    source = pa.table({"id": ids, "v": pa.array([number] * len(ids), pa.int64())})
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(source)


def _update(dataset: Any, number: int) -> None:
    dataset.update({"v": str(number)}, where=f"id = {number % _ROWS}")
