"""Tests of I/O meters."""

from __future__ import annotations

import gc
from pathlib import Path

from lancelake.storage.instrumented import IoCounts, count_written, meter_of
from lancelake.storage.local import LocalStore
from lancelake.storage.location import Location


def _at(folder: Path) -> Location:
    return Location.parse(folder)


def test_calls_and_bytes_are_counted(tmp_path: Path) -> None:
    meter = meter_of(_at(tmp_path))
    store = _at(tmp_path).store
    store.put("a", b"12345")
    store.put_stream("b", [b"1", b"23"])
    assert store.get("a") == b"12345"
    assert store.get_range("a", start=1, length=2) == b"23"
    store.delete("b")
    assert meter.counts == IoCounts(reads=2, bytes_read=7, writes=3, bytes_written=8)


def test_tables_have_meters_of_their_own(tmp_path: Path) -> None:
    meter, other = meter_of(_at(tmp_path / "a")), meter_of(_at(tmp_path / "b"))
    _at(tmp_path / "a").store.put("x", b"1")
    assert (meter.counts.writes, other.counts.writes) == (1, 0)
    assert meter_of(_at(tmp_path / "a")) is meter


def test_files_written_without_the_store_are_counted(tmp_path: Path) -> None:
    meter = meter_of(_at(tmp_path))
    count_written(_at(tmp_path), 7)
    assert meter.counts == IoCounts(writes=1, bytes_written=7)


def test_a_table_without_a_watcher_is_not_metered(tmp_path: Path) -> None:
    meter = meter_of(_at(tmp_path))
    assert not isinstance(_at(tmp_path).store, LocalStore)
    del meter
    gc.collect()
    assert isinstance(_at(tmp_path).store, LocalStore)
    count_written(_at(tmp_path), 7)


def test_counts_are_subtracted() -> None:
    one = IoCounts(reads=1, bytes_read=2, writes=3, bytes_written=4)
    two = IoCounts(reads=2, bytes_read=4, writes=6, bytes_written=8)
    assert two - one == one
