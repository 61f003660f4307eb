"""Rows of data files with other bits: values or a typed error, and the process goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec.file_ends import container_at
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt

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


# Without a limit, such a file takes the memory of the machine.
REPLACE = """
import resource, sys
from pathlib import Path

import lancelake.pylance as lance
from lancelake.errors import LanceTableError

resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
table, at, data = Path(sys.argv[1]), int(sys.argv[2]), bytes.fromhex(sys.argv[3])
(file,) = table.glob("data/*.lance")
content = file.read_bytes()
file.write_bytes(content[:at] + data + content[at + len(data) :])
for read in (lambda ds: ds.take([0, 9]), lambda ds: ds.to_table(), lambda ds: ds.head(7)):
    try:
        read(lance.dataset(table))
    except LanceTableError:
        print("reported")
"""


@pytest.mark.parametrize(
    ("name", "buffer", "at", "data"),
    [
        ("long", 1, 18, b"\xff\xff"),
        ("lists", 0, 0, b"\0"),
        ("chunks", -1, 0, b"\1"),
    ],
)
def test_bounds_of_rows_do_not_end_the_process(
    tmp_path: Path, name: str, buffer: int, at: int, data: bytes
) -> None:
    columns = {
        "long": ["x" * (300 + n) for n in range(40)],
        "lists": [["z" * 300] * (1 + n % 2) for n in range(40)],
        "chunks": [[n] * (n % 3) for n in range(40)],
    }
    table = tmp_path / "t.lance"
    lance.write_dataset(pa.table({name: columns[name]}), table, data_storage_version="2.1")
    (file,) = table.glob("data/*.lance")
    end = container_at(FileAt(root=Location.parse(table), path=f"data/{file.name}"))
    begin = end.column(0).pages[0].buffer_offsets[buffer]
    command = [sys.executable, "-c", REPLACE, str(table), str(begin + at), data.hex()]
    run = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.split()) == (0, ["reported"] * 3), run.stderr[-2_000:]


def test_damaged_data_files_do_not_end_the_process(tmp_path: Path) -> None:
    rows = {"id": pa.array(range(9), pa.int64()), "text": [f"x{n}" for n in range(9)]}
    rows["flag"] = pa.array([True] * 9)
    lance.write_dataset(pa.table(rows), tmp_path / "t.lance")
    command = [sys.executable, "-c", READ, str(tmp_path / "t.lance"), *map(str, SEEDS)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("LANCE_")}
    run = subprocess.run(command, cwd=REPO, env=kept, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "alive"), run.stderr[-2_000:]
