"""Reads in forked processes work or raise a clear error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.threads import OwnStream

# Runs what it is given in a forked child, and prints what came of it.
PRELUDE = """
import os, signal, sys, traceback, warnings
warnings.filterwarnings("ignore", message="lance is not fork-safe")
import pyarrow as pa
import lancelake.pylance as lance

uri = sys.argv[1]
ds = lance.dataset(uri)

def in_child(act):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        # Ends a child that hangs.
        signal.alarm(600)
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


@pytest.fixture
def uri(tmp_path: Path) -> Path:
    rows = pa.table({"a": range(20_000), "s": [str(i % 7) for i in range(20_000)]})
    path = tmp_path / "t.lance"
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


def test_a_child_whose_parent_has_read_reads_and_writes(uri: Path) -> None:
    program = READS + (
        "ds.to_table(filter='a + 1 > 2')\n"
        "for read in reads[:6]:\n    in_child(read)\n"
        "in_child(lambda: reads[-1]().count_rows())\n"
        "ds.delete('a = 1')\n"
        "print(sum(batch.num_rows for batch in ds.to_batches()))\n"
    )
    found = _run(uri, program)
    assert found == ["19999", "952", "19990", "[1, 9001, 3]", "2500", "19999", "20000", "19999"]


def test_a_grandchild_reads(uri: Path) -> None:
    program = """
ds.to_table()

def both():
    rows = ds.to_table().num_rows
    in_child(lambda: ds.to_table(filter="a >= 100").num_rows)
    return rows

in_child(both)
"""
    first, second = _run(uri, program)
    assert int(second) - int(first) == 99


def test_an_open_index_is_read_in_the_child(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"a": range(1_000)}), tmp_path / "t.lance")
    table.create_scalar_index("a", "BTREE")
    program = """
ds.to_table(filter="a = 7")
in_child(lambda: (ds.count_rows("a < 70"), ds.to_table(filter="a = 9")["a"].to_pylist()))
"""
    assert _run(tmp_path / "t.lance", program) == ["(70, [9])"]


def test_sorting_and_sql_are_refused_in_a_child_whose_parent_has_evaluated_sql(uri: Path) -> None:
    program = READS + "ds.to_table(filter='a + 1 > 2')\nfor n in (6, 7):\n    in_child(reads[n])\n"
    for line in _run(uri, program):
        assert line.startswith("refused: a forked process cannot use DataFusion")
        assert '"spawn"' in line


def test_a_child_that_cannot_copy_the_library_is_refused(uri: Path) -> None:
    program = """
import resource, signal

ds.to_table()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
in_child(lambda: ds.to_table().num_rows)
"""
    (found,) = _run(uri, program)
    assert found.startswith("refused: a forked process cannot use the codec that its parent has")
    assert '"forkserver"' in found


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
from lancelake.data.codec import official

mine = official.folder()
child = os.fork()
if child == 0:
    assert official.folder() != mine
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(mine.exists())
"""
    assert _run(uri, program) == ["True"]


def test_a_stream_that_raised_does_not_end() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise TimeoutError("too late")

    stream = OwnStream(items(), "a scan")
    assert next(stream) == 1
    with pytest.raises(TimeoutError):
        next(stream)
    with pytest.raises(InvalidRequestError, match="cannot be continued after an error: Timeout"):
        next(stream)
