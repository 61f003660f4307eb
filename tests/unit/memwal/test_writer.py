from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import (
    InvalidRequestError,
    SchemaMismatchError,
    StorageError,
    StorageUnavailableError,
    WriterFencedError,
)
from lancelake.format.memwal import wal_files
from lancelake.memwal import writer as writing
from lancelake.memwal.generations import MemTable
from lancelake.memwal.region import RegionFiles
from lancelake.memwal.view import Freshness
from lancelake.memwal.writer import WriterOptions
from tests.support.failing_store import FailingCalls, Stop
from tests.support.memwal_tables import INLINE, REGION, keys, new_table, rows, seen, writer


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    return new_table(tmp_path / "t", (1, "base"), (2, "base"))


def _generations(base: Snapshot) -> list[int]:
    manifest = RegionFiles.at(base.location, REGION).latest()
    return [] if manifest is None else [g.generation for g in manifest.generations]


def test_rows_are_durable_when_a_put_returns(base: Snapshot) -> None:
    mine = writer(base)
    mine.put(rows((1, "new"), (3, "new")))
    mine.delete(keys(2))
    assert seen(base) == {1: "new", 3: "new"}
    assert _generations(base) == []


def test_a_new_writer_replays_and_flushes_on_close(base: Snapshot) -> None:
    writer(base).put(rows((3, "new")))
    writer(base).close()
    assert _generations(base) == [1]
    assert seen(base, Freshness.FLUSHED) == {1: "base", 2: "base", 3: "new"}


def test_a_writer_without_rows_flushes_nothing(base: Snapshot) -> None:
    with writer(base) as mine:
        mine.put(rows())
    assert _generations(base) == []


def test_a_replaced_writer_stops_for_good(base: Snapshot) -> None:
    old = writer(base)
    old.put(rows((3, "old")))
    writer(base).put(rows((4, "new")))
    for _ in range(2):
        with pytest.raises(WriterFencedError, match="another writer has claimed region"):
            old.put(rows((3, "late")))
    with pytest.raises(WriterFencedError):
        old.flush()
    assert seen(base) == {1: "base", 2: "base", 3: "old", 4: "new"}


def test_a_replaced_writer_does_not_flush(base: Snapshot) -> None:
    old = writer(base)
    old.put(rows((3, "old")))
    writer(base)
    with pytest.raises(WriterFencedError):
        old.close()
    assert _generations(base) == []


def test_a_writer_that_is_replaced_during_its_replay_says_so(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer(base).put(rows((3, "old")))
    original = writing.replayed

    def slow(files: RegionFiles, *args: Any, **options: Any) -> Iterator[MemTable]:
        monkeypatch.setattr(writing, "replayed", original)
        writer(base).close()
        files.store.delete(wal_files.wal_entry(REGION, files.positions()[0]))
        yield from original(files, *args, **options)

    monkeypatch.setattr(writing, "replayed", slow)
    with pytest.raises(WriterFencedError):
        writer(base)
    assert seen(base)[3] == "old"


def test_a_full_memtable_is_flushed(base: Snapshot) -> None:
    mine = writer(base, replace(INLINE, max_memtable_rows=2))
    for key in range(10, 15):
        mine.put(rows((key, "a")))
    assert _generations(base) == [1, 2]
    assert seen(base) == {1: "base", 2: "base"} | dict.fromkeys(range(10, 15), "a")


def test_a_put_above_the_limit_is_a_generation_of_its_own(base: Snapshot) -> None:
    mine = writer(base, replace(INLINE, max_memtable_rows=2))
    mine.put(rows((10, "a")))
    mine.put(rows(*((key, "b") for key in range(10, 20))))
    mine.close()
    assert _generations(base) == [1, 2]
    assert seen(base)[10] == "b"


def test_flushes_run_in_the_background_and_writes_wait_for_memory(base: Snapshot) -> None:
    options = WriterOptions(max_memtable_rows=1, max_unflushed_bytes=1)
    with writer(base, options) as mine:
        for key in range(20):
            mine.put(rows((key, "a")))
            assert len(mine.unflushed().memtables) <= 3
    assert _generations(base) == list(range(1, 21))


def test_concurrent_calls_share_a_wal_entry(base: Snapshot) -> None:
    calls, arrived = 16, threading.Semaphore(0)

    class Queue(deque[Any]):
        def append(self, value: Any) -> None:
            super().append(value)
            arrived.release()

    mine = writer(base)
    mine._queue = Queue()
    with ThreadPoolExecutor(calls) as pool:
        with mine._log_lock:
            futures = [pool.submit(mine.put, rows((100 + n, "x"))) for n in range(calls)]
            for _ in range(calls):
                arrived.acquire()
        for future in futures:
            future.result()
    assert RegionFiles.at(base.location, REGION).last_position() == 1
    assert len(seen(base)) == 2 + calls


@pytest.mark.parametrize("stop", Stop)
def test_a_put_without_a_reply_is_written_once(base: Snapshot, stop: Stop) -> None:
    mine = writer(base)
    calls = FailingCalls([0], stop=stop, only=frozenset({"create"}))
    mine.files = replace(mine.files, store=calls.on(mine.files.store))
    mine.put(rows((3, "new")))
    mine.put(rows((4, "new")))
    assert RegionFiles.at(base.location, REGION).last_position() == 2
    assert seen(base) == {1: "base", 2: "base", 3: "new", 4: "new"}


def test_a_writer_whose_store_fails_is_not_usable_any_more(base: Snapshot) -> None:
    mine = writer(base)
    calls = FailingCalls(range(6), only=frozenset({"create"}))
    mine.files = replace(mine.files, store=calls.on(mine.files.store))
    with pytest.raises(StorageUnavailableError):
        mine.put(rows((3, "lost")))
    with pytest.raises(StorageError, match="Open a new writer"):
        mine.put(rows((4, "late")))
    writer(base).put(rows((5, "new")))
    assert seen(base) == {1: "base", 2: "base", 5: "new"}


def test_a_sealed_region_takes_no_more_writers(base: Snapshot) -> None:
    mine = writer(base)
    mine.put(rows((3, "new")))
    mine.seal()
    with pytest.raises(InvalidRequestError, match="is closed"):
        mine.put(rows((4, "late")))
    with pytest.raises(InvalidRequestError, match="is sealed"):
        writer(base)
    assert seen(base, Freshness.FLUSHED)[3] == "new"


def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(base: Snapshot) -> None:
    mine = writer(base)
    with pytest.raises(SchemaMismatchError, match="name is missing"):
        mine.put(keys(1))
    assert RegionFiles.at(base.location, REGION).last_position() == 0


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="max_memtable_rows"):
        WriterOptions(max_memtable_rows=0)


def test_the_epoch_rises_with_each_writer(base: Snapshot) -> None:
    assert [writer(base).epoch for _ in range(3)] == [1, 2, 3]


def test_a_flush_that_fails_in_the_background_is_reported(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("no space left")

    mine = writer(base, WriterOptions(max_memtable_rows=1, max_unflushed_bytes=1))
    monkeypatch.setattr(writing, "write_generation", full)
    mine.put(rows((3, "new")))
    with pytest.raises(StorageError, match="no space left"):
        mine.put(rows((4, "lost")))
    with pytest.raises(StorageError, match="no space left"):
        mine.close()
    monkeypatch.undo()
    writer(base).close()
    assert seen(base, Freshness.FLUSHED) == {1: "base", 2: "base", 3: "new"}
