"""Benchmarks of building, refreshing and using scalar indices in changes of a table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

_WORK = tables.ROOT / "indices-work.lance"
_KEYS = 1000
_STEP = 7919
_BUILDS = (
    ("BTREE", "id"),
    ("BTREE", "s"),
    ("BITMAP", "k"),
    ("LABEL_LIST", "l"),
    ("ZONEMAP", "id"),
    ("BLOOMFILTER", "id"),
    ("NGRAM", "s"),
)
_ROUNDS = 3
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
    """Yield the builds of every kind, a refresh, and a merge by key."""
    plain = Path(tables.labelled(rows))
    for kind, column in _BUILDS:
        dtype = lance.dataset(plain).schema.field(column).type
        name = f"build of a {kind} of {dtype}"
        yield _change(name, 1.2, plain, _built(column, kind))
    grown = Path(tables.grown(rows))
    yield _change("optimize_indices after 1 % more rows", 1.2, grown, _refreshed)
    yield _merging(Path(tables.indexed(rows)), rows)


def _change(name: str, target: float, path: Path, change: Callable[[Any], object]) -> Case:
    def ours() -> object:
        with disk_sync.waiting(waits=False):
            return change(lancelake.dataset(str(_WORK)))

    return Case(
        name=name,
        target=target,
        before=lambda: fresh_copy(path, _WORK),
        ours=ours,
        official=lambda: change(lance.dataset(str(_WORK))),
        rounds=_ROUNDS,
        notes_cpu=True,
    )


def _built(column: str, kind: str) -> Callable[[Any], object]:
    return lambda table: table.create_scalar_index(column, kind, name="built") and None


def _refreshed(table: Any) -> object:
    table.optimize.optimize_indices()
    return sorted({index["name"] for index in table.list_indices()})


def _merging(path: Path, rows: int) -> Case:
    """Compare an upsert through the index of its key with one that scans the keys."""
    keys = np.arange(_KEYS) * _STEP % rows
    zeros = np.zeros(_KEYS)
    source = pa.table({"id": keys, "k": keys % 1000, "v": zeros, "s": keys.astype(str)})

    def merge(use_index: bool) -> object:
        with disk_sync.waiting(waits=False):
            job = lancelake.dataset(str(_WORK)).merge_insert("id").use_index(use_index)
            done = job.when_matched_update_all().when_not_matched_insert_all().execute(source)
        return done["num_updated_rows"]

    return Case(
        name="merge_insert of 1,000 keys with a key index",
        target=0.3,
        before=lambda: fresh_copy(path, _WORK),
        ours=lambda: merge(True),
        official=lambda: merge(False),
        peer="Lancelake without the index",
    )


def build_peak_mb(library: str) -> int:
    """Build a BTREE in a process of its own and return its peak resident size in MB."""
    command = [sys.executable, "-c", _BUILD, library, tables.shuffled(BUILD_ROWS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])
