"""Benchmarks of adding columns: time and memory."""

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

ROWS = 10_000_000
VECTORS = 1_000_000
WIDTH = 768
BACKFILL_TARGET_MB = 2048
WAYS = ("function", "stream", "merge")

_WORK = tables.ROOT / "columns-work.lance"
_BATCH_ROWS = 100_000
_SEED = 20_260_101
_EXPRESSIONS = {"an integer": "a * 2 + 1", "a float": "b * 2.0", "a text": "upper(s)"}
_MEMORY = """
import pathlib, sys
from benchmarks.columns import backfill
rows = backfill(sys.argv[1], int(sys.argv[2]), sys.argv[3])
status = pathlib.Path("/proc/self/status").read_text()
print(rows, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def cases(rows: int = ROWS) -> Iterator[Case]:
    """Yield the comparisons of columns that SQL computes; neither or both wait for the disk."""
    path = Path(numbers(rows))
    for label, sql in _EXPRESSIONS.items():
        for waits in (False, True):
            yield Case(
                name=f"add {label} computed for {rows:,} rows{', on disk' if waits else ''}",
                target=1.0,
                before=lambda: _prepare(path),
                ours=lambda e=sql, w=waits: _ours(e, waits=w),
                official=lambda e=sql, w=waits: _official(e, waits=w),
            )


def peak_mb(way: str, rows: int = VECTORS) -> int:
    """Backfill a vector column in a process of its own; return the peak resident size in MB."""
    path = tables.ROOT / f"backfill-{way}.lance"
    shutil.rmtree(path, ignore_errors=True)
    lance.write_dataset(pa.table({"id": np.arange(rows)}), str(path), data_storage_version="2.1")
    command = [sys.executable, "-c", _MEMORY, str(path), str(rows), way]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        shutil.rmtree(path, ignore_errors=True)
    found, peak = done.stdout.split()
    if int(found) != rows:
        msg = f"the last of {rows} rows has the vector of another"
        raise AssertionError(msg)
    return int(peak)


def backfill(uri: str, rows: int, way: str) -> int:
    """Give every row a vector of 768 floats; return the number that the last row's is made of."""
    ds = lancelake.dataset(uri)
    if way == "function":
        udf = lancelake.batch_udf(output_schema=pa.schema([_FIELD]))
        ds.add_columns(udf(lambda batch: _vectors(batch.column("id").to_numpy())))
    elif way == "stream":
        batches = (_vectors(np.arange(i, min(i + 1000, rows))) for i in range(0, rows, 1000))
        ds.add_columns(pa.RecordBatchReader.from_batches(pa.schema([_FIELD]), batches))
    else:
        ds.merge(_shuffled(rows), "id")
    (last,) = ds.take([rows - 1], columns=["v"]).column("v").to_pylist()
    return int(last[-1]) + 1


def numbers(rows: int) -> str:
    """Make a table of an integer, a float and a short text."""
    path = tables.ROOT / f"numbers-{rows}.lance"
    if not path.exists():
        chance = np.random.default_rng(_SEED)
        batches = (_numbers(chance) for _ in range(0, rows, _BATCH_ROWS))
        schema = _numbers(chance).schema
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        lance.write_dataset(reader, str(path), data_storage_version="2.1")
    return str(path)


_FIELD = pa.field("v", pa.list_(pa.float32(), WIDTH))


def _numbers(chance: np.random.Generator) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "a": pa.array(chance.integers(0, 1 << 40, _BATCH_ROWS)),
            "b": pa.array(chance.random(_BATCH_ROWS)),
            "s": pa.array([f"name-{n}" for n in chance.integers(0, 1 << 20, _BATCH_ROWS)]),
        }
    )


def _vectors(ids: Any) -> pa.RecordBatch:
    values = np.repeat(ids.astype(np.float32), WIDTH)
    return pa.record_batch([pa.FixedSizeListArray.from_arrays(values, WIDTH)], names=["v"])


def _shuffled(rows: int) -> pa.RecordBatchReader:
    """Return all ids with their vectors, batches of ids in any order."""
    order = np.random.default_rng(_SEED).permutation(rows // 1000)
    schema = pa.schema([pa.field("id", pa.int64()), _FIELD])

    def batches() -> Iterator[pa.RecordBatch]:
        for number in order:
            ids = np.arange(number * 1000, (number + 1) * 1000)[::-1]
            vectors = _vectors(ids).column(0)
            yield pa.RecordBatch.from_arrays([pa.array(ids), vectors], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _prepare(path: Path) -> None:
    """Copy the table; what an earlier turn left in memory goes to disk before the clock starts."""
    fresh_copy(path, _WORK)
    os.sync()


def _ours(sql: str, *, waits: bool) -> int:
    with disk_sync.waiting(waits=waits):
        return _added(lancelake, sql)


def _official(sql: str, *, waits: bool) -> int:
    before = set(_WORK.glob("data/*"))
    columns = _added(lance, sql)
    for path in set(_WORK.glob("data/*")) - before if waits else ():
        with path.open("rb") as file:
            os.fsync(file)
    return columns


def _added(library: Any, sql: str) -> int:
    """Add a column and return how many there are."""
    ds = library.dataset(str(_WORK))
    ds.add_columns({"computed": sql})
    return len(ds.schema.names)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--vectors", type=int, default=VECTORS)
    options = parser.parse_args()
    Path(tables.ROOT).mkdir(exist_ok=True)
    for case in cases(options.rows):
        result = compare(case)
        print(
            f"{result.name:56s} ours {result.ours_s:6.2f} s  official {result.official_s:6.2f} s  "
            f"ratio {result.ratio:5.2f}  target {result.target}",
            flush=True,
        )
    for way in WAYS:
        peak = peak_mb(way, options.vectors)
        print(f"peak memory of {options.vectors:,} vectors by {way}: {peak} MB", flush=True)


if __name__ == "__main__":
    main()
