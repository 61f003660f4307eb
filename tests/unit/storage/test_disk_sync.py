"""Commits wait for the disk unless that is disabled."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lancelake.errors import StorageError
from lancelake.storage import disk_sync
from lancelake.storage.local import LocalStore

PROGRAM = "from lancelake.storage import disk_sync; print(disk_sync._choice['waits'])"


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(os, "fsync", found.append)
    return found


def test_a_store_waits_for_the_disk(synced: list[int], tmp_path: Path) -> None:
    LocalStore(str(tmp_path)).put("a", b"")
    assert synced


def test_a_store_without_sync_does_not_wait(synced: list[int], tmp_path: Path) -> None:
    with disk_sync.waiting(waits=False):
        LocalStore(str(tmp_path)).put("a", b"")
    assert synced == []


def test_a_store_waits_again_afterwards(synced: list[int], tmp_path: Path) -> None:
    with disk_sync.waiting(waits=False):
        pass
    LocalStore(str(tmp_path)).put("a", b"")
    assert synced


def test_each_new_folder_is_synced_into_its_parent(synced: list[int], tmp_path: Path) -> None:
    disk_sync.make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    assert len(synced) == 2
    disk_sync.make_folder(str(tmp_path / "a" / "b"))
    assert len(synced) == 2


def test_a_block_syncs_files_in_parallel_and_waits_at_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both = threading.Barrier(2)
    monkeypatch.setattr(os, "fsync", lambda _: both.wait(60))
    (tmp_path / "a").touch()

    def work() -> None:
        disk_sync.sync_file(tmp_path / "a")
        disk_sync.sync_folder(tmp_path)

    disk_sync.until_named(work)


def test_a_file_gets_its_name_when_all_files_of_its_block_are_on_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "data").touch()
    data = (tmp_path / "data").stat().st_ino
    staged, names_seen = threading.Event(), list[bool]()

    def sync(fd: int) -> None:
        if os.fstat(fd).st_ino != data:
            staged.set()
            return
        staged.wait(60)
        names_seen.append((tmp_path / "manifest").exists())

    monkeypatch.setattr(os, "fsync", sync)

    def work() -> None:
        disk_sync.sync_file(tmp_path / "data")
        LocalStore(str(tmp_path)).create("manifest", b"1")
        assert names_seen == [False]

    disk_sync.until_named(work)


def test_a_failed_sync_stops_every_later_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "data").touch()
    data = (tmp_path / "data").stat().st_ino

    def sync(fd: int) -> None:
        if os.fstat(fd).st_ino == data:
            raise OSError(errno.EIO, "disk failed")

    monkeypatch.setattr(os, "fsync", sync)
    store = LocalStore(str(tmp_path))

    def work() -> None:
        disk_sync.sync_file(tmp_path / "data")
        for name in ("1", "2"):
            with pytest.raises(StorageError, match="disk failed"):
                store.create(name, b"")

    with pytest.raises(OSError, match="disk failed"):
        disk_sync.until_named(work)
    assert sorted(store.list_names("")) == ["data"]


def test_work_that_a_handler_ended_leaves_nothing_to_later_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "a").touch()
    monkeypatch.setattr(disk_sync._Started, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        disk_sync.until_named(lambda: disk_sync.sync_file(tmp_path / "missing"))
    LocalStore(str(tmp_path)).create("b", b"")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(NotADirectoryError):
        disk_sync.make_folder(str(tmp_path / "a"))
    with pytest.raises(NotADirectoryError):
        disk_sync.sync_folder(tmp_path / "a")


@pytest.mark.parametrize(("value", "waits"), [("off", "False"), ("on", "True")])
def test_the_environment_decides(value: str, waits: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LANCELAKE_FSYNC": value},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == waits


def test_what_a_handler_raises_while_a_folder_is_looked_up_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class DeadlineError(TimeoutError):
        pass

    def interrupted(*_arguments: object, **_options: object) -> os.stat_result:
        raise DeadlineError

    with monkeypatch.context() as patched, pytest.raises(DeadlineError):
        patched.setattr(os, "stat", interrupted)
        disk_sync.make_folder(str(tmp_path))
