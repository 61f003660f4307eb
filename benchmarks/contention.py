"""Benchmarks of row changes with concurrent writers that append at a steady rate.

The changes have one core, and the appenders the others, so that none takes time from another.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import lance
import pyarrow as pa

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Comparison

LOADS = tuple(itertools.product((1, 2), (10, 20)))
"""How many appenders, and how often each of them appends in a second."""

TARGET = 1.2
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
    """How long each change took that landed, how many failed, and what all took together."""

    seconds: tuple[float, ...]
    failed: int
    elapsed_s: float
    cpu_s: float

    @property
    def median_s(self) -> float:
        """Median of those that landed; without any, all the time there was."""
        return statistics.median(self.seconds) if self.seconds else self.elapsed_s

    @property
    def each_s(self) -> float:
        """Time there was for each that landed."""
        return self.elapsed_s / max(1, len(self.seconds))

    @property
    def each_cpu_s(self) -> float:
        """Processor time for each that landed; other work on the machine changes it less."""
        return self.cpu_s / max(1, len(self.seconds))

    def __str__(self) -> str:
        return f"{len(self.seconds)} landed, {self.failed} failed"


def comparisons() -> Iterator[Comparison]:
    """Yield upserts and updates beside appenders; each library appends to a table of its own."""
    for name in _CHANGES:
        for appenders, rate in LOADS:
            ours, peer = (_landed(library, name, appenders, rate) for library in _LIBRARIES)
            each = compared(name, appenders, rate, ours, peer, target=TARGET)
            yield each
            cpu = ours.each_cpu_s / peer.each_cpu_s
            yield replace(
                each,
                name=f"{each.name}: time for each that landed",
                ours_s=ours.each_s,
                official_s=peer.each_s,
                note=f"{each.note}; ratio of processor time {cpu:.2f}",
            )


def compared(
    name: str, appenders: int, rate: int, ours: Landed, peer: Landed, *, target: float
) -> Comparison:
    """Return both medians with what landed."""
    return Comparison(
        name=f"{name} beside {appenders} x {rate} appends/s",
        target=target,
        ours_s=ours.median_s,
        official_s=peer.median_s,
        rounds=len(ours.seconds),
        note=f"ours {ours}; peer {peer}",
    )


def measured(change: Change, *, seconds: float = _SECONDS) -> Landed:
    """Make one change after the other for a while."""
    taken: list[float] = []
    failed = 0
    begin, busy = time.perf_counter(), time.process_time()
    for number in itertools.count():
        start = time.perf_counter()
        if start >= begin + seconds:
            return Landed(
                seconds=tuple(taken),
                failed=failed,
                elapsed_s=start - begin,
                cpu_s=time.process_time() - busy,
            )
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
    """Let processes append single rows with keys of their own, on all cores but the first."""
    firsts = [(number + 1) * 1_000_000_000 for number in range(appenders)]
    arguments = [sys.executable, "-c", _APPENDER, library, uri, str(rate)]
    processes = [
        _started([*arguments, str(first)], place)
        for first, place in zip(firsts, itertools.cycle(_cores()[1:] or _cores()))
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


def _landed(library: str, change: str, appenders: int, rate: int) -> Landed:
    """Make changes in a process of its own, on the first core."""
    uri = fresh_table(library)
    with appending(library, uri, appenders, rate):
        command = [sys.executable, "-m", "benchmarks.contention", library, change, uri]
        output, _ = _started(command, _cores()[0]).communicate()
    return Landed(**json.loads(output))


def _cores() -> list[int | None]:
    """Return the cores there are, or None where processes cannot be bound to one."""
    return [*os.sched_getaffinity(0)] if hasattr(os, "sched_getaffinity") else [None]


def _started(command: list[str], core: int | None) -> subprocess.Popen[str]:
    """Start a process whose threads all run on one core."""
    env = {**os.environ, "LANCELAKE_FSYNC": "off"}
    if core is None:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    # A process gets the cores of the thread that starts it.
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    finally:
        os.sched_setaffinity(0, usual)


def main() -> None:
    """Change a table for a while, and print what landed."""
    library, change, uri = sys.argv[1:]
    landed = measured(lambda number: _CHANGES[change](_LIBRARIES[library].dataset(uri), number))
    print(json.dumps(asdict(landed)))


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


_CHANGES: dict[str, Callable[[Any, int], None]] = {"upsert": _upsert, "update": _update}


if __name__ == "__main__":
    main()
