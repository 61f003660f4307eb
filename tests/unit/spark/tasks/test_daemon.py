"""The daemon of Python workers."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec import official
from lancelake.spark.tasks.daemon import (
    freezing,
    keep_archives_read,
    keep_files_with_spark,
    loaded_archives,
    quiet,
    share_arenas,
)

SOCKET: Any = None
# Reads a table in a child, as a worker does, and prints the packages that the child imported.
_FORK = """
import os, sys, warnings
warnings.simplefilter("ignore")
import lancelake.pylance as lance
from lancelake.data.codec.official import codec_is_loaded
from lancelake.spark.tasks.daemon import preload
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
def thawed() -> Iterator[None]:
    """Let this process collect everything again."""
    gc.unfreeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_modules_that_a_task_loads_are_excluded_from_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def worker(sock: object, authenticated: bool) -> int:
        monkeypatch.setitem(sys.modules, "loaded_by_a_task", ModuleType("loaded_by_a_task"))
        return 3

    assert freezing(worker)(SOCKET, True) == 3
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("thawed")
def test_tasks_that_load_nothing_leave_their_objects_to_collection() -> None:
    assert freezing(lambda sock, authenticated: 0)(SOCKET, True) == 0
    assert gc.get_freeze_count() == 0


@pytest.fixture
def fresh_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process create its temporary folder again."""
    monkeypatch.setattr(official, "_folder", official._Folder())


@pytest.mark.usefixtures("fresh_folder")
def test_temporary_files_of_workers_are_in_a_folder_of_spark(tmp_path: Path) -> None:
    keep_files_with_spark({"SPARK_LOCAL_DIRS": f"{tmp_path},/elsewhere"})
    assert official.fresh_path().parent.parent == tmp_path


@pytest.mark.usefixtures("fresh_folder")
def test_without_a_folder_of_spark_the_default_is_used(tmp_path: Path) -> None:
    keep_files_with_spark({"SPARK_LOCAL_DIRS": str(tmp_path / "missing")})
    keep_files_with_spark({})
    assert official.fresh_path().parent.is_dir()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an archive of a module on the path of modules."""
    path = tmp_path / "modules.zip"
    with ZipFile(path, "w") as file:
        file.writestr("module_of_an_archive.py", "")
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    assert importlib.util.find_spec("module_of_an_archive") is not None
    return path


def added(archive: Path) -> bool:
    """Whether a module is found that is put into an archive before importers are told."""
    with ZipFile(archive, "a") as file:
        file.writestr("another_module_of_an_archive.py", "")
    importlib.invalidate_caches()
    return importlib.util.find_spec("another_module_of_an_archive") is not None


def test_archives_that_were_there_at_the_start_are_not_listed_again(archive: Path) -> None:
    assert str(archive) in loaded_archives()
    keep_archives_read(loaded_archives())
    assert not added(archive)


def test_archives_of_users_are_listed_again(archive: Path) -> None:
    keep_archives_read(loaded_archives() - {str(archive)})
    assert added(archive)


def test_a_limit_of_heaps_that_the_user_set_stays() -> None:
    assert not share_arenas({"MALLOC_ARENA_MAX": "8"})


_HEAPS = """
import ctypes, threading
from lancelake.spark.tasks.daemon import share_arenas
assert share_arenas({})
library = ctypes.CDLL(None)
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.sbrk.restype, library.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
ready = threading.Barrier(12)
heaps = []
def take():
    ready.wait()
    block = library.malloc(1000)
    # The first heap ends at the break; others are in regions of 64 MB of their own.
    heaps.append(0 if block < library.sbrk(0) else block >> 26)
    ready.wait()
threads = [threading.Thread(target=take) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(set(heaps)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has several heaps")
def test_threads_of_a_worker_share_two_heaps() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _HEAPS], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) <= 2
