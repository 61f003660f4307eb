"""Benchmarks of filters that scalar indices answer, with warm and with cold caches."""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
from collections.abc import Iterator

import lance

import lancelake
from benchmarks import tables
from benchmarks.measure import Case, Comparison

_STEP = 7919
_KEYS = 1000
_COLD_ROUNDS = 7
# Modules are loaded by a query of another table; then nothing of this one is in memory.
_COLD = """
import os, pathlib, sys, time
library, small, uri, text = sys.argv[1:]
module = __import__(library)
module.dataset(small).to_table(["id", "v"], "id = 1 OR k = 2")
for path in pathlib.Path(uri).rglob("*"):
    if path.is_file():
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
start = time.perf_counter()
found = module.dataset(uri).to_table(["id", "v"], text).num_rows
print(found, time.perf_counter() - start)
"""


def cases(rows: int) -> Iterator[Case | Comparison]:
    """Yield the comparisons of filters on indexed columns."""
    chosen = [number * _STEP % rows for number in range(_KEYS)]
    yield from _warm(rows, chosen)
    low, part = rows // 3, rows // 100
    yield _cold("point lookup by BTREE, cold", 1.5, rows, f"id = {chosen[5]}")
    yield _cold("point lookup by BITMAP, cold", 1.5, rows, "k = 5")
    yield _cold("range of 1 %, cold", 1.0, rows, f"id >= {low} AND id < {low + part}")
    yield _cold("IN of 1,000 values, cold", 1.0, rows, _one_of(chosen))


def _warm(rows: int, chosen: list[int]) -> Iterator[Case]:
    uri = tables.indexed(rows)
    ours, official = lancelake.dataset(uri), lance.dataset(uri)

    def both(name: str, target: float, *texts: str, columns: list[str], rounds: int = 9) -> Case:
        """Compare reads by conditions, another one each time."""
        mine, theirs = itertools.cycle(texts), itertools.cycle(texts)
        return Case(
            name=name,
            target=target,
            ours=lambda: ours.to_table(columns, next(mine)).num_rows,
            official=lambda: official.to_table(columns, next(theirs)).num_rows,
            rounds=rounds,
            notes_cpu=True,
        )

    points = [f"id = {number}" for number in chosen[:20]]
    yield both("point lookup by BTREE", 1.5, *points, columns=["id", "v", "s"], rounds=101)
    groups = [f"k = {number}" for number in range(20)]
    yield both("point lookup by BITMAP", 1.5, *groups, columns=["id", "v"], rounds=41)
    low, part = rows // 3, rows // 100
    between = f"id >= {low} AND id < {low + part}"
    yield both("range of 1 %", 1.0, between, columns=["id", "v"])
    yield both("IN of 1,000 values", 1.0, _one_of(chosen), columns=["id", "v"])
    mixed = f"NOT (k > 5 OR id > {rows // 2}) OR id = 77"
    yield both("NOT and OR of two indices", 1.2, mixed, columns=["id", "v"])
    yield Case(
        name="count by an indexed condition",
        target=1.0,
        ours=lambda: ours.count_rows(between),
        official=lambda: official.count_rows(between),
    )


def _one_of(chosen: list[int]) -> str:
    return f"id IN ({', '.join(map(str, chosen))})"


def _cold(name: str, target: float, rows: int, text: str) -> Comparison:
    """Compare first queries of new processes, after the files have left the page cache."""
    uri, small = tables.indexed(rows), tables.indexed(1000)
    times: dict[str, list[float]] = {"lancelake": [], "lance": []}
    found = set()
    for _ in range(_COLD_ROUNDS):
        for library, measured in times.items():
            command = [sys.executable, "-c", _COLD, library, small, uri, text]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            count, seconds = done.stdout.split()
            found.add(count)
            measured.append(float(seconds))
    if len(found) > 1:
        msg = f"{name}: {found} rows"
        raise AssertionError(msg)
    return Comparison(
        name=name,
        target=target,
        ours_s=statistics.median(times["lancelake"]),
        official_s=statistics.median(times["lance"]),
        rounds=_COLD_ROUNDS,
    )
