"""Benchmarks of deleting, updating and merging rows: time and memory."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Case, compare
from lancelake.storage import disk_sync

_SEED = 20_260_101
_WORK = tables.ROOT / "rows-work.lance"
_MEMORY = """
import pathlib, sys
from benchmarks.rows import LIBRARIES, big_merge
print(big_merge(LIBRARIES[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])))
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""
LIBRARIES: dict[str, Any] = {"lancelake": lancelake, "lance": lance}


def cases(rows: int) -> Iterator[Case]:
    """Yield the comparisons of changes to a table of 4 columns and ten fragments."""
    yield from _cases(rows, columns=4, fragments=10, label="")


def more_cases(rows: int) -> Iterator[Case]:
    """Yield the same changes to tables of other shapes."""
    yield from _cases(rows, columns=4, fragments=1, label=", 1 fragment")
    yield from _cases(rows, columns=4, fragments=100, label=", 100 fragments")
    yield from _cases(rows // 5, columns=20, fragments=10, label=", 20 columns")


def _cases(rows: int, *, columns: int, fragments: int, label: str) -> Iterator[Case]:
    path = Path(tables.plain(rows, columns=columns, fragments=fragments))
    source = _source(rows, columns)

    def case(name: str, target: float, change: Callable[[Any], object]) -> Case:
        return Case(
            name=f"{name} {rows // 1_000_000} M rows{label}",
            target=target,
            before=lambda: fresh_copy(path, _WORK),
            ours=lambda: _without_waiting(change),
            official=lambda: change(lance.dataset(_WORK)),
        )

    yield case("delete 1 % of", 1.0, lambda ds: ds.delete("key % 100 = 3")["num_deleted_rows"])
    yield case("update 10 % of", 1.0, _update)
    yield case("merge 1 % changed, 1 % new into", 0.8, lambda ds: _upsert(ds, source))


def _without_waiting(change: Callable[[Any], object]) -> object:
    """Change our table as official Lance does: without waiting for the disk."""
    with disk_sync.waiting(waits=False):
        return change(lancelake.dataset(_WORK))


def fresh_copy(source: Path, target: Path) -> None:
    """Copy a table; its data files, which never change, are only linked."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=os.link)


def big_merge(library: Any, rows: int, source_rows: int) -> object:
    """Merge a stream of rows, half of them new, into a copy of a table of 5 columns."""
    path = Path(tables.plain(rows, columns=5, fragments=20))
    work = tables.ROOT / "merge-work.lance"
    fresh_copy(path, work)
    step = 100_000
    first = rows - source_rows // 2

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(first, first + source_rows, step):
            keys = np.arange(start, min(start + step, first + source_rows))
            yield tables.plain_batch(keys, 5)

    schema = tables.plain_batch(np.arange(1), 5).schema
    return _upsert(library.dataset(work), pa.RecordBatchReader.from_batches(schema, batches()))


def merge_peak_mb(library: str, rows: int, source_rows: int) -> int:
    """Run a large merge in a process of its own and return its peak resident size in MB."""
    command = [sys.executable, "-c", _MEMORY, library, str(rows), str(source_rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def _update(dataset: Any) -> object:
    return dataset.update({"c0": "c0 + 1"}, where="key % 10 = 3")["num_rows_updated"]


def _upsert(dataset: Any, source: Any) -> object:
    builder = dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    stats = builder.execute(source)
    return stats["num_inserted_rows"], stats["num_updated_rows"]


def _source(rows: int, columns: int) -> pa.Table:
    chance = np.random.default_rng(_SEED)
    known = chance.choice(rows, rows // 100, replace=False)
    keys = np.concatenate([known, np.arange(rows, rows + rows // 100)])
    return pa.Table.from_batches([tables.plain_batch(keys, columns)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--shapes", action="store_true", help="other shapes of tables as well")
    parser.add_argument("--memory", action="store_true", help="the memory of a large merge")
    options = parser.parse_args()
    chosen = [*cases(options.rows), *(more_cases(options.rows) if options.shapes else ())]
    for case in chosen:
        result = compare(case)
        print(
            f"{result.name:52s} ours {result.ours_s * 1e3:7.1f} ms  official "
            f"{result.official_s * 1e3:7.1f} ms  ratio {result.ratio:5.2f}  target {result.target}",
            flush=True,
        )
    if options.memory:
        for library in LIBRARIES:
            peak = merge_peak_mb(library, 2 * options.rows, options.rows // 2)
            print(f"peak memory of a merge, {library}: {peak} MB", flush=True)


if __name__ == "__main__":
    main()
