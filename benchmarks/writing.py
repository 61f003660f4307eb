"""Benchmarks of writing rows to data files: time and memory."""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance.fragment import write_fragments as official_write

from benchmarks import tables
from benchmarks.measure import Case, compare
from lancelake.clock import SystemIds
from lancelake.data.column_file import WriteTask, write_fragments
from lancelake.format.arrow_schema import from_arrow
from lancelake.format.fragment import FileVersion
from lancelake.storage import disk_sync
from lancelake.storage.location import Location

_SOURCE_ROWS = 200_000
_BATCH_ROWS = 20_000
_SEED = 20_260_101
_BYTES_PER_ROW = 380
_MEMORY = """
import pathlib, sys
from benchmarks.writing import WRITERS, stream
WRITERS[sys.argv[1]](stream(float(sys.argv[2])), "2.1")
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""


def cases(gigabytes: float) -> Iterator[Case]:
    """Yield the comparisons of bulk writes: both wait for the disk, or neither does."""
    for version in ("2.0", "2.1", "2.2"):
        yield Case(
            name=f"write {gigabytes:g} GB, files {version}",
            target=1.1,
            ours=lambda v=version: _relaxed(stream(gigabytes), v),
            official=lambda v=version: _official(stream(gigabytes), v),
            rounds=5,
        )
        yield Case(
            name=f"write {gigabytes:g} GB durably, files {version}",
            target=1.1,
            ours=lambda v=version: _ours(stream(gigabytes), v),
            official=lambda v=version: _official(stream(gigabytes), v, durably=True),
            rounds=3,
        )
    yield Case(
        name="write 2,000 batches of 100 rows",
        target=1.1,
        ours=lambda: _relaxed(_small_batches(2000, 100), "2.1"),
        official=lambda: _official(_small_batches(2000, 100), "2.1"),
    )


def peak_mb(library: str, gigabytes: float) -> int:
    """Write a stream in a process of its own and return the peak resident size in MB."""
    command = [sys.executable, "-c", _MEMORY, library, str(gigabytes)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def stream(gigabytes: float) -> pa.RecordBatchReader:
    """Return a stream of rows that repeats itself, so that making it costs nothing."""
    source = _source()
    rows = int(gigabytes * 1e9 / _BYTES_PER_ROW)

    def batches() -> Iterator[pa.RecordBatch]:
        left = rows
        while left > 0:
            for batch in source:
                yield batch.slice(0, left)
                left -= batch.num_rows
                if left <= 0:
                    return

    return pa.RecordBatchReader.from_batches(source[0].schema, batches())


@functools.cache
def _source() -> list[pa.RecordBatch]:
    """Return rows of 20 columns: numbers, short text and a vector of 64 floats."""
    chance = np.random.default_rng(_SEED)
    batches = []
    for _ in range(_SOURCE_ROWS // _BATCH_ROWS):
        columns: dict[str, pa.Array] = {
            f"c{i}": pa.array(chance.integers(0, 1 << 40, _BATCH_ROWS)) for i in range(16)
        }
        columns |= {f"f{i}": pa.array(chance.random(_BATCH_ROWS)) for i in range(2)}
        columns["s"] = pa.array([f"name-{n}" for n in chance.integers(0, 1 << 30, _BATCH_ROWS)])
        vectors = pa.array(chance.random(_BATCH_ROWS * 64, dtype=np.float32))
        columns["v"] = pa.FixedSizeListArray.from_arrays(vectors, 64)
        batches.append(pa.record_batch(columns))
    return batches


def _small_batches(count: int, rows: int) -> pa.RecordBatchReader:
    batch = _source()[0].slice(0, rows)
    return pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(count)))


def _ours(reader: pa.RecordBatchReader, version: str) -> int:
    with tempfile.TemporaryDirectory(dir=tables.ROOT) as folder:
        task = WriteTask(
            root=Location.parse(folder),
            schema=from_arrow(reader.schema),
            file_version=FileVersion(version),
        )
        fragments = write_fragments(task, reader, ids=SystemIds())
        return sum(fragment.physical_rows or 0 for fragment in fragments)


def _relaxed(reader: pa.RecordBatchReader, version: str) -> int:
    with disk_sync.waiting(waits=False):
        return _ours(reader, version)


def _official(reader: pa.RecordBatchReader, version: str, *, durably: bool = False) -> int:
    folder = tempfile.mkdtemp(dir=tables.ROOT)
    try:
        fragments = official_write(reader, folder, data_storage_version=version)
        if durably:
            for path in Path(folder, "data").iterdir():
                with path.open("rb") as file:
                    os.fsync(file)
        return sum(fragment.physical_rows for fragment in fragments)
    finally:
        shutil.rmtree(folder)


WRITERS: dict[str, Callable[[pa.RecordBatchReader, str], int]] = {
    "lancelake": _ours,
    "lance": _official,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    gigabytes = parser.parse_args().gigabytes
    tables.ROOT.mkdir(exist_ok=True)
    for case in cases(gigabytes):
        result = compare(case)
        print(
            f"{result.name:36s} ours {result.ours_s:6.2f} s  official {result.official_s:6.2f} s  "
            f"ratio {result.ratio:5.2f}  target {result.target}",
            flush=True,
        )
    for library in WRITERS:
        print(f"peak memory of {gigabytes:g} GB, {library}: {peak_mb(library, gigabytes)} MB")


if __name__ == "__main__":
    main()
