"""Benchmarks of the MemWAL: puts, latency, reads with unmerged rows, lookups and merges."""

from __future__ import annotations

import itertools
import shutil
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancelake.pylance as lancelake
from benchmarks import tables
from benchmarks.measure import Case, Comparison
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

_WORK = tables.ROOT / "memwal-work.lance"
_KEY = {"lance-schema:unenforced-primary-key": "true"}
_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata=_KEY),
        pa.field("name", pa.string()),
        pa.field("value", pa.float64()),
    ]
)
_ROWS = 100_000
_CALLS = {1: 100, 100: 100, 10_000: 20}
_ROUNDS = 5
_CALLERS = 8
_SHARD = str(uuid.uuid5(uuid.NAMESPACE_URL, "memwal benchmark"))

Seconds = Callable[[], float]


def cases(rows: int) -> Iterator[Case | Comparison]:
    """Yield all comparisons; reads and merges are those of a table of `rows` rows."""
    for size, calls in _CALLS.items():
        name = f"{calls} durable puts of {size:,} rows"
        official = lambda s=size, c=calls: _official_puts(s, c)  # noqa: E731
        yield _compared(name, 1.0, lambda s=size, c=calls: _our_puts(s, c), official)
        waiting = lambda s=size, c=calls: _our_puts(s, c, waits=True)  # noqa: E731
        yield _compared(name, 1.0, waiting, official, note="ours waits")
    yield _compared(
        "50 durable puts of 100 rows, and 50 merge_insert",
        0.2,
        lambda: _our_puts(100, 50),
        lambda: _merge_inserts(lancelake, 50),
        note="the peer is merge_insert of Lancelake",
    )
    yield _compared(
        "50 durable puts of 100 rows, and 50 merge_insert of pylance",
        0.2,
        lambda: _our_puts(100, 50),
        lambda: _merge_inserts(lance, 50),
    )
    yield from _latencies()
    yield from _reads(rows)
    yield from _lookups(rows)
    yield _merge(rows)


def _table(rows: int) -> Path:
    """Return a table with a MemWAL of one region, made once."""
    path = tables.ROOT / f"memwal-{rows}.lance"
    if not path.exists():
        tables.ROOT.mkdir(exist_ok=True)
        ds = lancelake.write_dataset(batch(0, rows), path)
        ds.wal.initialize(unsharded=True)
    return path


def batch(start: int, rows: int, step: int = 1) -> pa.Table:
    """Return rows with ascending keys."""
    keys = np.arange(start, start + rows * step, step)
    names = pa.array([f"name {key % 1000}" for key in keys.tolist()])
    return pa.table([pa.array(keys), names, pa.array(keys * 0.5)], schema=_SCHEMA)


def _compared(
    name: str, target: float, ours: Seconds, official: Seconds, *, note: str = ""
) -> Comparison:
    """Time both in turns, each by itself."""
    first, second = [], []
    for turn in range(_ROUNDS):
        for work, times in ((ours, first), (official, second))[:: 1 if turn % 2 else -1]:
            times.append(work())
    return Comparison(
        name=name,
        target=target,
        ours_s=statistics.median(first),
        official_s=statistics.median(second),
        rounds=_ROUNDS,
        note=note,
    )


def _batches(size: int, calls: int) -> list[pa.Table]:
    return [batch(number * size // 2, size) for number in range(calls)]


def _timed(put: Callable[[pa.Table], object], batches: list[pa.Table]) -> float:
    start = time.perf_counter()
    for each in batches:
        put(each)
    return time.perf_counter() - start


def _our_puts(size: int, calls: int, *, waits: bool = False) -> float:
    fresh_copy(_table(_ROWS), _WORK)
    with disk_sync.waiting(waits=waits):
        writer = lancelake.dataset(_WORK).wal.writer()
        writer.put(batch(-1, 1))
        seconds = _timed(writer.put, _batches(size, calls))
        writer.close(flush=False)
    return seconds


def _official_puts(size: int, calls: int) -> float:
    fresh_copy(_table(_ROWS), _WORK)
    writer = _official_writer()
    writer.put(batch(-1, 1))
    seconds = _timed(writer.put, _batches(size, calls))
    writer.close()
    return seconds


def _official_writer() -> Any:
    """Return a writer whose puts do not wait for its timer, which says nothing about the work."""
    return lance.dataset(_WORK).mem_wal_writer(_SHARD, max_wal_flush_interval_ms=1)


def _merge_inserts(library: Any, calls: int) -> float:
    fresh_copy(_table(_ROWS), _WORK)
    ds = library.dataset(_WORK)

    def upsert(rows: pa.Table) -> None:
        builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        builder.execute(rows)

    with disk_sync.waiting(waits=False):
        return _timed(upsert, _batches(100, calls))


def _latencies() -> Iterator[Comparison]:
    """Yield the latency of puts of 10 rows from several threads."""
    ours: list[float] = []
    official: list[float] = []
    for _ in range(3):
        fresh_copy(_table(_ROWS), _WORK)
        with disk_sync.waiting(waits=False):
            writer = lancelake.dataset(_WORK).wal.writer()
            ours += _concurrently(writer.put)
            writer.close(flush=False)
        fresh_copy(_table(_ROWS), _WORK)
        other = _official_writer()
        official += _concurrently(other.put)
        other.close()
    for share in (50, 99):
        yield Comparison(
            name=f"put of 10 rows, {_CALLERS} concurrent callers: p{share}",
            target=1.0,
            ours_s=float(np.percentile(ours, share)),
            official_s=float(np.percentile(official, share)),
            rounds=len(ours),
        )


def _concurrently(put: Callable[[pa.Table], object]) -> list[float]:
    def calls(caller: int) -> list[float]:
        found = []
        for number in range(50):
            rows = batch((caller * 50 + number) * 10, 10)
            start = time.perf_counter()
            put(rows)
            found.append(time.perf_counter() - start)
        return found

    with ThreadPoolExecutor(_CALLERS) as pool:
        return list(itertools.chain.from_iterable(pool.map(calls, range(_CALLERS))))


def _unmerged(rows: int) -> tuple[Path, Path]:
    """Return a table with 1 % unmerged rows, half of them flushed, and the same one merged."""
    made = tables.ROOT / f"memwal-{rows}-unmerged.lance"
    merged = tables.ROOT / f"memwal-{rows}-merged.lance"
    for path in (made, merged):
        shutil.rmtree(path, ignore_errors=True)
        fresh_copy(_table(rows), path)
        writer = lancelake.dataset(path).wal.writer()
        writer.put(batch(0, rows // 200, step=200))
        writer.flush()
        writer.put(batch(100, rows // 200, step=200))
        writer.close(flush=False)
    lancelake.dataset(merged).wal.merge(flush=True)
    return made, merged


def _reads(rows: int) -> Iterator[Case]:
    made, merged = (lancelake.dataset(path) for path in _unmerged(rows))
    size = f"{rows:,} rows"
    yield Case(
        name=f"read {size} with 1 % unmerged, and merged",
        target=1.3,
        ours=lambda: made.wal.to_table().num_rows,
        official=lambda: merged.to_table().num_rows,
        note="the peer is the merged table",
    )
    yield Case(
        name=f"read one column of {size} with 1 % unmerged, and merged",
        target=1.3,
        ours=lambda: made.wal.to_table(["value"]).num_rows,
        official=lambda: merged.to_table(["value"]).num_rows,
        note="the peer is the merged table",
    )


def _lookups(rows: int) -> Iterator[Case]:
    path, _ = _unmerged(rows)
    ours, theirs = lancelake.dataset(path), lance.dataset(path)
    (region,) = ours.wal.status().regions
    shard = lance.ShardSnapshot(str(region.region))
    for generation in region.unmerged:
        shard = shard.with_sstable(generation.generation, generation.path)
    planner = lance.LsmPointLookupPlanner(theirs, [shard])
    for what, key in (("a flushed row", 400), ("a row of the table", 401)):
        yield Case(
            name=f"lookup of {what} by key",
            target=1.0,
            ours=lambda k=key: ours.wal.get([k], freshness="flushed")["id"].to_pylist(),
            official=lambda k=key: planner.plan_lookup(pa.array([k])).to_table()["id"].to_pylist(),
            rounds=31,
        )


def _merge(rows: int) -> Comparison:
    """Compare the merge of flushed rows with merge_insert of the same rows."""
    changes = batch(rows - rows // 20, rows // 10)

    def ours() -> float:
        fresh_copy(_table(rows), _WORK)
        with disk_sync.waiting(waits=False):
            with lancelake.dataset(_WORK).wal.writer(max_memtable_rows=rows) as writer:
                writer.put(changes)
            return _timed(lambda _: lancelake.dataset(_WORK).wal.merge(), [changes])

    def plain() -> float:
        fresh_copy(_table(rows), _WORK)
        ds = lancelake.dataset(_WORK)
        builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        with disk_sync.waiting(waits=False):
            return _timed(builder.execute, [changes])

    return _compared(
        f"merge {rows // 10:,} flushed rows, and merge_insert",
        1.2,
        ours,
        plain,
        note="the peer is merge_insert of Lancelake",
    )
