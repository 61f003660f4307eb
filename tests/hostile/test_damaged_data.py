"""Rows of data files with other bits: values or a typed error, and the process goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance

REPO = Path(__file__).parents[2]
# With the codec of 14.0.2, the last two end a process that decodes in the caller's thread.
SEEDS = (*range(20), 39, 134)
READ = """
import random, shutil, sys
from pathlib import Path

import lancelake.pylance as lance
from lancelake.errors import LanceTableError
from tests.hostile.mutations import flip

table = Path(sys.argv[1])
for seed in map(int, sys.argv[2:]):
    # Files never change, so those of one place are read once.
    copy = Path(shutil.copytree(table, table.with_name(f"{seed}.lance")))
    (file,) = copy.glob("data/*.lance")
    file.write_bytes(flip(file.read_bytes(), random.Random(seed)))
    for read in (lambda ds: ds.take([0, 2]), lambda ds: ds.to_table(filter="id > 3")):
        try:
            read(lance.dataset(copy))
        except LanceTableError:
            pass
print("alive")
"""


def test_damaged_data_files_do_not_end_the_process(tmp_path: Path) -> None:
    rows = {"id": pa.array(range(9), pa.int64()), "text": [f"x{n}" for n in range(9)]}
    rows["flag"] = pa.array([True] * 9)
    lance.write_dataset(pa.table(rows), tmp_path / "t.lance")
    command = [sys.executable, "-c", READ, str(tmp_path / "t.lance"), *map(str, SEEDS)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LANCE_")}
    run = subprocess.run(command, cwd=REPO, env=kept, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "alive"), run.stderr[-2_000:]
