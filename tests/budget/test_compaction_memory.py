"""Memory of a compaction does not depend on the size of the table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.storage import disk_sync

WIDTH = 1024
ROWS_PER_BATCH = 1000
SMALL, LARGE = 60, 180
"""Batches of four megabytes: the large table has 480 MB more."""

MOST_GROWTH_MB = 240
"""Half of what the large table has more: peaks of equal runs differ by up to 130 MB."""

MOST_MB = 1024
PROGRAM = """
import pathlib, sys
import lancelake.pylance as lance
ds = lance.dataset(sys.argv[1])
ds.optimize.compact_files(num_threads=1, **eval(sys.argv[2]))
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def vectors(folder: Path, batches: int) -> Path:
    """Write rows of 1,024 floats into two fragments, with some of them deleted."""
    uri = folder / f"{batches}.lance"
    values = pa.array(np.random.default_rng(1).random(ROWS_PER_BATCH * WIDTH, dtype=np.float32))
    ids = pa.array(range(ROWS_PER_BATCH), pa.int64())
    batch = pa.record_batch({"id": ids, "v": pa.FixedSizeListArray.from_arrays(values, WIDTH)})
    reader = pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(batches)))
    with disk_sync.waiting(waits=False):
        ds = lance.write_dataset(reader, uri, max_rows_per_file=-(-batches // 2) * ROWS_PER_BATCH)
        ds.delete("id % 7 = 3")
    return uri


def peak_mb(uri: Path, **options: object) -> int:
    command = [sys.executable, "-c", PROGRAM, str(uri), repr(options)]
    environment = os.environ | {"LANCELAKE_FSYNC": "off"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return int(done.stdout)


OPTIONS: dict[str, dict[str, object]] = {
    "encoded again": {"compaction_mode": "reencode"},
    "sorted": {"sort_by": "id"},
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a small table and a large one."""
    folder = tmp_path_factory.mktemp("memory")
    return vectors(folder, SMALL), vectors(folder, LARGE)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_memory_does_not_grow_with_the_table(
    name: str, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    copies = [Path(shutil.copytree(table, tmp_path / table.name)) for table in tables]
    small, large = (peak_mb(copy, **OPTIONS[name]) for copy in copies)
    assert large - small < MOST_GROWTH_MB
    assert large < MOST_MB
