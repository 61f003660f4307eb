"""The daemon of Python workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec import spool
from lancelake.spark.worker.daemon import keep_files_with_spark, quiet

SOCKET: Any = None
# Reads a table in a child, as a worker does, and prints the packages that the child imported.
_FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import lancelake.pylance as lance
from lancelake.data.codec.library import codec_is_loaded
from lancelake.spark.worker.daemon import preload
preload()
assert not codec_is_loaded()
before = set(sys.modules)
if os.fork() == 0:
    assert lance.dataset(sys.argv[1]).count_rows("a > 0") == 2
    print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}), flush=True)
    os._exit(0)
assert os.wait()[1] == 0
"""


@pytest.mark.parametrize("failure", [BrokenPipeError, ConnectionResetError])
def test_a_worker_whose_reader_left_ends_without_a_traceback(failure: type[OSError]) -> None:
    def worker(sock: object, authenticated: bool) -> int:
        raise failure

    assert quiet(worker)(SOCKET, True) == 1


def test_another_failure_of_a_worker_is_reported() -> None:
    def worker(sock: object, authenticated: bool) -> int:
        raise MemoryError

    with pytest.raises(MemoryError):
        quiet(worker)(SOCKET, True)


def test_workers_import_no_package_of_their_own(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": [0, 1, 2]}), tmp_path / "t")
    arguments = [sys.executable, "-c", _FORK, str(tmp_path / "t")]
    found = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert not {"lance", "pandas"} & set(found.stdout.split())


def test_the_code_of_a_worker_is_kept() -> None:
    assert quiet(lambda sock, authenticated: 3)(SOCKET, True) == 3


@pytest.fixture
def fresh_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process create its temporary folder again."""
    monkeypatch.setattr(spool, "_folder", spool._Folder())


@pytest.mark.usefixtures("fresh_folder")
def test_temporary_files_of_workers_are_in_a_folder_of_spark(tmp_path: Path) -> None:
    keep_files_with_spark({"SPARK_LOCAL_DIRS": f"{tmp_path},/elsewhere"})
    assert spool.fresh_path().parent.parent == tmp_path


@pytest.mark.usefixtures("fresh_folder")
def test_without_a_folder_of_spark_the_default_is_used(tmp_path: Path) -> None:
    keep_files_with_spark({"SPARK_LOCAL_DIRS": str(tmp_path / "missing")})
    keep_files_with_spark({})
    assert spool.fresh_path().parent.is_dir()
