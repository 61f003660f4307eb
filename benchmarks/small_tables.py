"""Benchmarks of single calls on small tables, and on tables of many tiny fragments."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lancelake
from benchmarks import tables
from benchmarks.measure import Case
from benchmarks.rows import fresh_copy
from lancelake.storage import disk_sync

ROWS = 100_000
FRAGMENTS = 10_000

# Calls of a millisecond vary more than long ones.
_ROUNDS = 151

_WORK = tables.ROOT / "small-work.lance"
_TEN = "key >= 50000 AND key < 50010"
_TAKEN = [17, 1_000, 23_456, 34_567, 45_678, 56_789, 67_890, 78_901, 89_012, 99_999]


def cases(rows: int = ROWS, fragments: int = FRAGMENTS) -> Iterator[Case]:
    """Yield the comparisons."""
    yield from _small(Path(tables.plain(rows, columns=5, fragments=1)), rows)
    yield from _tiny_fragments(Path(tables.many_fragments(fragments)), fragments)
    shutil.rmtree(_WORK, ignore_errors=True)


def _small(path: Path, rows: int) -> Iterator[Case]:
    source = _source(rows)
    yield _change("delete 10 rows", 1.2, path, _delete)
    yield _change("update 10 rows", 1.2, path, _update)
    yield _change("upsert 100 rows", 1.2, path, lambda ds: _upsert(ds, source))
    yield _look("filtered count", 1.2, path, lambda ds: ds.count_rows("c0 < 0.5"))
    yield _look("point read by a filter", 1.2, path, lambda ds: _read(ds, "key = 70007"))
    yield _look("take 10 rows", 1.1, path, lambda ds: ds.take(_TAKEN).num_rows)
    yield Case(
        name="open and read all",
        target=1.0,
        ours=lambda: lancelake.dataset(path).to_table().num_rows,
        official=lambda: lance.dataset(path).to_table().num_rows,
        rounds=_ROUNDS,
    )


def _tiny_fragments(path: Path, fragments: int) -> Iterator[Case]:
    of = f", {fragments:,} fragments of ten rows"
    yield _look(f"filtered count{of}", 1.5, path, lambda ds: ds.count_rows("a < 50000"), rounds=5)
    yield _look(f"full scan{of}", 1.5, path, lambda ds: ds.to_table().num_rows, rounds=5)
    yield _change(f"delete 1 row{of}", 1.5, path, _delete_one, rounds=5)


def _look(
    name: str, target: float, path: Path, look: Callable[[Any], object], *, rounds: int = _ROUNDS
) -> Case:
    """Compare reads of a dataset that is open."""
    ours, official = lancelake.dataset(path), lance.dataset(path)
    return Case(
        name=name,
        target=target,
        ours=lambda: look(ours),
        official=lambda: look(official),
        rounds=rounds,
    )


def _change(
    name: str, target: float, path: Path, change: Callable[[Any], object], *, rounds: int = _ROUNDS
) -> Case:
    """Compare changes, each to a fresh copy, the opening included."""
    return Case(
        name=name,
        target=target,
        before=lambda: fresh_copy(path, _WORK),
        ours=lambda: _without_waiting(change),
        official=lambda: change(lance.dataset(_WORK)),
        rounds=rounds,
    )


def _without_waiting(change: Callable[[Any], object]) -> object:
    """Change our table as official Lance does: without waiting for the disk."""
    with disk_sync.waiting(waits=False):
        return change(lancelake.dataset(_WORK))


def _read(dataset: Any, condition: str) -> int:
    return int(dataset.to_table(filter=condition).num_rows)


def _delete(dataset: Any) -> object:
    return dataset.delete(_TEN)["num_deleted_rows"]


def _delete_one(dataset: Any) -> object:
    return dataset.delete("a = 50005")["num_deleted_rows"]


def _update(dataset: Any) -> object:
    return dataset.update({"c0": "c0 + 1"}, where=_TEN)["num_rows_updated"]


def _upsert(dataset: Any, source: pa.Table) -> object:
    builder = dataset.merge_insert("key").when_matched_update_all().when_not_matched_insert_all()
    stats = builder.execute(source)
    return stats["num_inserted_rows"], stats["num_updated_rows"]


def _source(rows: int) -> pa.Table:
    """Return 50 keys of the table and 50 new ones."""
    keys = np.concatenate([np.arange(0, rows, rows // 50), np.arange(rows, rows + 50)])
    return pa.Table.from_batches([tables.plain_batch(keys, 5)])
