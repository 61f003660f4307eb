"""Memory of a filtered scan of wide rows is bounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.storage import disk_sync

MOST_GROWTH_MB = 600
PROGRAM = """
import pathlib, sys
import lancelake.pylance as lance

def megabytes(name):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(name)[2].split()[0]) // 1024

ds = lance.dataset(sys.argv[1])
ds.count_rows(sys.argv[2])
before = megabytes("VmRSS:")
for _ in ds.to_batches(filter=sys.argv[2]):
    pass
print(megabytes("VmHWM:") - before)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def doubles() -> Iterator[pa.RecordBatch]:
    """Yield 40,000 rows of 1,500 doubles, 480 MB."""
    chance = np.random.default_rng(1)
    for _ in range(20):
        yield pa.record_batch({f"c{i}": chance.random(2000) for i in range(1500)})


def vectors() -> Iterator[pa.RecordBatch]:
    """Yield 200,000 rows with a vector of 768 floats, 600 MB."""
    chance = np.random.default_rng(1)
    for _ in range(40):
        values = pa.array(chance.random(5000 * 768, dtype=np.float32))
        vector = pa.FixedSizeListArray.from_arrays(values, 768)
        yield pa.record_batch({"c0": chance.random(5000), "v": vector})


@pytest.mark.parametrize("condition", ["c0 > 0.5", "c0 > 0.7", "c0 > 0.99"])
@pytest.mark.parametrize("rows", [doubles, vectors])
def test_memory_is_bounded(rows: object, condition: str, tables: dict[object, Path]) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tables[rows]), condition]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < MOST_GROWTH_MB


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[object, Path]:
    """Return a table of each kind, in one fragment."""
    folder = tmp_path_factory.mktemp("wide")
    found: dict[object, Path] = {}
    for rows in (doubles, vectors):
        reader = pa.RecordBatchReader.from_batches(next(rows()).schema, rows())
        with disk_sync.waiting(waits=False):
            lance.write_dataset(reader, folder / rows.__name__)
        found[rows] = folder / rows.__name__
    return found
