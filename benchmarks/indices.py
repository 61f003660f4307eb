"""How fast are filters that scalar indices answer?"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator

import lance
import numpy as np
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case

_STEP = 7919
_KEYS = 1000
BUILD_TARGET_MB = 1024
BUILD_ROWS = 50_000_000
_BUILD = """
import pathlib, sys
library, uri = sys.argv[1:]
module = __import__(library)
module.dataset(uri).create_scalar_index("id", "BTREE", replace=True)
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def cases(rows: int) -> Iterator[Case]:
    """Yield the comparisons of filters on indexed columns, with warm caches."""
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
        )

    chosen = [number * _STEP % rows for number in range(_KEYS)]
    points = [f"id = {number}" for number in chosen[:20]]
    yield both("point lookup by BTREE", 1.5, *points, columns=["id", "v", "s"], rounds=101)
    groups = [f"k = {number}" for number in range(20)]
    yield both("point lookup by BITMAP", 1.5, *groups, columns=["id", "v"], rounds=41)
    low, part = rows // 3, rows // 100
    between = f"id >= {low} AND id < {low + part}"
    yield both("range of 1 %", 1.0, between, columns=["id", "v"])
    some = f"id IN ({', '.join(map(str, chosen))})"
    yield both("IN of 1,000 values", 1.0, some, columns=["id", "v"])
    mixed = f"NOT (k > 5 OR id > {rows // 2}) OR id = 77"
    yield both("NOT and OR of two indices", 1.2, mixed, columns=["id", "v"])
    yield Case(
        name="count by an indexed condition",
        target=1.0,
        ours=lambda: ours.count_rows(between),
        official=lambda: official.count_rows(between),
    )
    yield _merging(uri, chosen)


def _merging(uri: str, keys: list[int]) -> Case:
    source = pa.table({"id": keys, "v": np.zeros(len(keys))})

    def merge(use_index: bool) -> str:
        job = lancelake.dataset(uri).merge_insert("id").use_index(use_index)
        return job.when_matched_update_all().analyze_plan(source).partition("\n")[0]

    return Case(
        name="merge_insert of 1,000 keys with a key index",
        target=0.3,
        ours=lambda: merge(True),
        official=lambda: merge(False),
        note="the second figure is ours, too: the same merge without the index",
    )


def build_peak_mb(library: str) -> int:
    """Build a BTREE in a process of its own and return its peak resident size in MB."""
    command = [sys.executable, "-c", _BUILD, library, tables.shuffled(BUILD_ROWS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])
