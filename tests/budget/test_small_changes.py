"""Budgets of calls on small tables: threads started, files opened by the codec, and syncs."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.data.codec import readers
from lancelake.storage import disk_sync

CALLS: dict[str, Callable[[lance.LanceDataset], object]] = {
    "filtered count": lambda ds: ds.count_rows("k < 500"),
    "point read": lambda ds: ds.to_table(filter="k = 500"),
    "read all": lambda ds: ds.to_table(),
    "take": lambda ds: ds.take([3, 500]),
    "delete": lambda ds: ds.delete("k = 500"),
    "update": lambda ds: ds.update({"v": "v + 1"}, where="k = 500"),
}


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return one fragment of a thousand rows."""
    return lance.write_dataset(pa.table({"k": range(1000), "v": [1.5] * 1000}), tmp_path / "t")


@pytest.mark.parametrize("name", CALLS)
def test_no_thread_is_started_that_has_nothing_to_wait_for(
    dataset: lance.LanceDataset, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    with disk_sync.waiting(waits=False):
        CALLS[name](dataset)
    assert started == []


@pytest.mark.parametrize(("name", "folders"), [("delete", 2), ("update", 3)])
def test_each_file_and_each_folder_of_a_commit_is_synced_once(
    dataset: lance.LanceDataset, name: str, folders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.delete("k = 1")  # creates the folder of deletion files
    synced: list[bool] = []

    def counted(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fsync", counted)
    with disk_sync.waiting(waits=True):
        CALLS[name](dataset)
    assert (synced.count(False), synced.count(True)) == (folders, folders)


@pytest.mark.parametrize(
    ("name", "opens"),
    [("filtered count", 1), ("point read", 2), ("read all", 1), ("take", 1), ("delete", 1)],
)
def test_a_file_is_opened_once_for_the_columns_of_a_step(
    dataset: lance.LanceDataset, name: str, opens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    open_file = readers.file_reader

    def counted(path: str, **options: object) -> object:
        opened.append(path)
        return open_file(path, **options)

    monkeypatch.setattr(readers, "file_reader", counted)
    CALLS[name](dataset)
    assert len(opened) <= opens
