"""Reads in forked processes work or raise a clear error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance

# Runs what it is given in a forked child, and prints what came of it.
PRELUDE = """
import os, sys, traceback, warnings
warnings.filterwarnings("ignore", message="lance is not fork-safe")
import pyarrow as pa
import lancelake.pylance as lance

uri = sys.argv[1]
ds = lance.dataset(uri)

def in_child(act):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            print(act(), flush=True)
            code = 0
        except NotImplementedError as error:
            print("refused:", error, flush=True)
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = pa.table({"a": range(20_000), "s": [str(i % 7) for i in range(20_000)]})
    path = tmp_path_factory.mktemp("forks") / "t.lance"
    lance.write_dataset(rows, path, max_rows_per_file=2_500).delete("a = 5")
    return path


def _run(uri: Path, program: str) -> list[str]:
    command = [sys.executable, "-c", PRELUDE + program, str(uri)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


READS = """
reads = [
    lambda: ds.to_table().num_rows,
    lambda: ds.to_table(filter="a % 3 = 0 AND s LIKE '1%'").num_rows,
    lambda: ds.count_rows("a + 1 > 10"),
    lambda: ds.take([1, 9_000, 3])["a"].to_pylist(),
    lambda: ds.get_fragments()[2].to_table().num_rows,
    lambda: lance.dataset(uri).to_table().num_rows,
    lambda: ds.to_table(order_by=["s"]).num_rows,
    lambda: ds.sql("SELECT max(a) m FROM dataset").build().to_batch_records()[0]["m"][0],
    lambda: lance.write_dataset(pa.table({"a": [1]}), uri, mode="append"),
]
"""


def test_a_child_whose_parent_has_read_is_refused_instead_of_left_waiting(uri: Path) -> None:
    program = READS + "ds.to_table(filter='a + 1 > 2')\nfor read in reads:\n    in_child(read)\n"
    found = _run(uri, program)
    assert len(found) == 9
    for line in found:
        assert line.startswith("refused: a forked process cannot use")
        assert '"spawn"' in line


def test_a_child_whose_parent_has_only_opened_the_table_reads(uri: Path) -> None:
    program = READS + "print(ds.count_rows())\nfor read in reads[:-1]:\n    in_child(read)\n"
    found = _run(uri, program)
    assert found == [
        "19999",
        "19999",
        "952",
        "19990",
        "[1, 9001, 3]",
        "2500",
        "19999",
        "19999",
        "19999",
    ]


def test_workers_of_a_forked_pool_read_fragments_beside_each_other(uri: Path) -> None:
    program = """
import multiprocessing

def count(number):
    return sum(batch.num_rows for batch in ds.get_fragments()[number].to_batches(batch_size=100))

total = ds.count_rows()
with multiprocessing.get_context("fork").Pool(3) as pool:
    print(sum(pool.map(count, range(8), chunksize=1)) == total)
"""
    assert _run(uri, program) == ["True"]


def test_a_worker_that_is_given_indices_takes_rows_in_batches(uri: Path) -> None:
    program = """
import multiprocessing

def worker(indices, results):
    while (batch := indices.get()) is not None:
        results.put(ds.take(batch).column("a").to_pylist())

context = multiprocessing.get_context("fork")
indices, results = context.Queue(), context.Queue()
workers = [context.Process(target=worker, args=(indices, results)) for _ in range(2)]
for each in workers:
    each.start()
for start in range(0, 100, 10):
    indices.put(list(range(start, start + 10)))
for _ in workers:
    indices.put(None)
taken = sorted(a for _ in range(10) for a in results.get())
for each in workers:
    each.join()
print(taken == [i if i < 5 else i + 1 for i in range(100)])
"""
    assert _run(uri, program) == ["True"]


def test_a_scan_that_the_parent_began_is_refused_in_the_child(uri: Path) -> None:
    (found,) = _run(uri, "began = ds.to_batches()\nnext(began)\nin_child(lambda: next(began))")
    assert found.startswith("refused: a scan started by a parent process")


def test_a_child_leaves_the_files_of_its_parent_alone(uri: Path) -> None:
    program = """
from lancelake.data.codec import spool

mine = spool.folder()
child = os.fork()
if child == 0:
    assert spool.folder() != mine
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(mine.exists())
"""
    assert _run(uri, program) == ["True"]
