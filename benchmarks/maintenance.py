"""Benchmarks of compaction: time, memory, and the cost of incremental runs."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case, compare
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

MEMORY_TARGET_MB = 1024
MEMORY_GIGABYTES = 4.0
ROUNDS = 5
WIDTH = 1024

_WORK = tables.ROOT / "compaction-work.lance"
_GROWN = tables.ROOT / "compaction-grown.lance"
_SEED = 20_260_101
_FRAGMENTS = 100
_SHARE_ADDED = 100
_MEMORY = """
import pathlib, sys
module = __import__(sys.argv[1])
module.dataset(sys.argv[2]).optimize.compact_files(compaction_mode="reencode")
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def cases(gigabytes: float = 1.0, rows: int = 2_000_000) -> Iterator[Case]:
    """Yield the comparisons of compactions; neither or both wait for the disk."""
    wide, plain = Path(vectors(gigabytes)), Path(small_fragments(rows))
    wide_target, plain_target = _rows_of(wide) // 5, rows // 5
    for waits in (False, True):
        suffix = ", on disk" if waits else ""
        yield _case(f"compact {gigabytes:g} GB of vectors{suffix}", wide, wide_target, waits=waits)
        yield _case(f"compact {rows:,} rows of 6 columns{suffix}", plain, plain_target, waits=waits)
    tiny = Path(tables.many_fragments(10_000))
    yield _case("compact 10,000 fragments of 10 rows", tiny, 20_000, waits=False)
    deleted = Path(with_deletions(gigabytes))
    yield _case(f"compact {gigabytes:g} GB with deleted rows", deleted, wide_target, waits=False)
    yield _case_of_growth(wide, wide_target)


def peak_mb(library: str, gigabytes: float = MEMORY_GIGABYTES) -> int:
    """Compact vectors in a process of its own, encoding them again; return the peak in MB."""
    fresh_copy(Path(vectors(gigabytes)), _WORK)
    command = [sys.executable, "-c", _MEMORY, library, str(_WORK)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        shutil.rmtree(_WORK, ignore_errors=True)
    return int(done.stdout)


def vectors(gigabytes: float) -> str:
    """Make a table of vectors of 1,024 floats in a hundred fragments."""
    path = tables.ROOT / f"vectors-{gigabytes:g}gb.lance"
    if not path.exists():
        rows = int(gigabytes * 1e9 / (4 * WIDTH)) // _FRAGMENTS * _FRAGMENTS
        chance = np.random.default_rng(_SEED)
        step = rows // _FRAGMENTS
        batches = (_vectors(chance, n * step, step) for n in range(_FRAGMENTS))
        reader = pa.RecordBatchReader.from_batches(_vectors(chance, 0, 1).schema, batches)
        lance.write_dataset(reader, str(path), max_rows_per_file=step, data_storage_version="2.1")
    return str(path)


def with_deletions(gigabytes: float) -> str:
    """Make the same table with every fifth row deleted."""
    path = tables.ROOT / f"vectors-{gigabytes:g}gb-deleted.lance"
    if not path.exists():
        fresh_copy(Path(vectors(gigabytes)), path)
        lance.dataset(str(path)).delete("id % 5 = 1")
    return str(path)


def small_fragments(rows: int) -> str:
    """Make a table of numbers and text in a hundred fragments."""
    return tables.plain(rows, columns=6, fragments=_FRAGMENTS)


def _vectors(chance: np.random.Generator, first: int, rows: int) -> pa.RecordBatch:
    values = pa.array(chance.random(rows * WIDTH, dtype=np.float32))
    ids = pa.array(np.arange(first, first + rows))
    return pa.record_batch({"id": ids, "v": pa.FixedSizeListArray.from_arrays(values, WIDTH)})


def _case(name: str, path: Path, target: int, *, waits: bool) -> Case:
    return Case(
        name=name,
        target=1.0,
        before=lambda: _prepare(path),
        ours=lambda: _ours(target, waits=waits),
        official=lambda: _official(target, waits=waits),
        rounds=ROUNDS,
    )


def _case_of_growth(path: Path, target: int) -> Case:
    """Compare our second compaction, after one row in a hundred was added, with our first."""
    rows = _rows_of(path)
    fresh_copy(path, _GROWN)
    with disk_sync.waiting(waits=False):
        ds = lancelake.dataset(str(_GROWN))
        ds.optimize.compact_files(target_rows_per_fragment=target)
        chance = np.random.default_rng(_SEED)
        for number in range(10):
            ds.insert(_vectors(chance, rows + number, rows // _SHARE_ADDED // 10))
    return Case(
        name="second compaction after adding 1 % (official: our first)",
        target=0.1,
        before=lambda: (_prepare(path), fresh_copy(_GROWN, _second())),
        ours=lambda: _ours(target, waits=False, path=_second()) <= _FRAGMENTS,
        official=lambda: _ours(target, waits=False) <= _FRAGMENTS,
        rounds=ROUNDS,
    )


def _second() -> Path:
    return tables.ROOT / "compaction-second.lance"


def _prepare(path: Path) -> None:
    """Copy the table; what an earlier turn left in memory goes to disk before the clock starts."""
    fresh_copy(path, _WORK)
    os.sync()


def _ours(target: int, *, waits: bool, path: Path = _WORK) -> int:
    with disk_sync.waiting(waits=waits):
        return _compacted(lancelake, path, target)


def _official(target: int, *, waits: bool) -> int:
    before = set(_WORK.glob("data/*"))
    found = _compacted(lance, _WORK, target)
    for path in set(_WORK.glob("data/*")) - before if waits else ():
        with path.open("rb") as file:
            os.fsync(file)
    return found


def _compacted(library: Any, path: Path, target: int) -> int:
    """Compact and return how many fragments are left."""
    ds = library.dataset(str(path))
    ds.optimize.compact_files(target_rows_per_fragment=target)
    return len(ds.get_fragments())


def _rows_of(path: Path) -> int:
    return int(lancelake.dataset(str(path)).count_rows())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory-gigabytes", type=float, default=MEMORY_GIGABYTES)
    options = parser.parse_args()
    tables.ROOT.mkdir(exist_ok=True)
    for case in cases(options.gigabytes, options.rows):
        result = compare(case)
        print(
            f"{result.name:56s} ours {result.ours_s:6.2f} s  official {result.official_s:6.2f} s  "
            f"ratio {result.ratio:5.2f}  target {result.target}",
            flush=True,
        )
    for library in ("lancelake", "lance"):
        peak = peak_mb(library, options.memory_gigabytes)
        print(f"peak memory of {options.memory_gigabytes:g} GB, {library}: {peak} MB")


if __name__ == "__main__":
    main()
