from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

import lancelake.pylance as lance
from lancelake.memwal.view import Freshness, pin
from tests.support.memwal_tables import keys, new_table, newest, rows, writer


def _read(path: Path, freshness: Freshness) -> dict[int, str | None]:
    """Return the rows that another process reads."""
    pinned = pickle.loads(pickle.dumps(pin(newest(path), freshness)))
    return {row["id"]: row["name"] for row in pinned.opened().to_table().to_pylist()}


def test_a_pinned_view_does_not_see_later_writes(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((2, "flushed")))
    mine.flush()
    mine.put(rows((3, "tail")))
    pinned = pin(base, Freshness.DURABLE)
    mine.put(rows((3, "later"), (4, "later")))
    mine.flush()
    found = pinned.opened().to_table().to_pylist()
    assert {r["id"]: r["name"] for r in found} == {1: "base", 2: "flushed", 3: "tail"}


def test_each_freshness_is_pinned(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    mine = writer(base)
    mine.put(rows((1, "flushed")))
    mine.flush()
    mine.put(rows((1, "tail")))
    assert _read(tmp_path / "t", Freshness.BASE) == {1: "base"}
    assert _read(tmp_path / "t", Freshness.FLUSHED) == {1: "flushed"}
    assert _read(tmp_path / "t", Freshness.DURABLE) == {1: "tail"}


def test_regions_without_rows_are_left_out(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"))
    with writer(base) as mine:
        mine.put(rows((1, "new")))
    lance.dataset(tmp_path / "t").wal.merge()
    assert pin(newest(tmp_path / "t"), Freshness.DURABLE).regions == ()


def test_replaced_keys_include_tombstones_and_renamed_columns(tmp_path: Path) -> None:
    base = new_table(tmp_path / "t", (1, "base"), (2, "base"), (3, "base"))
    mine = writer(base)
    mine.put(rows((1, "flushed")))
    mine.flush()
    mine.delete(keys(2))
    lance.dataset(tmp_path / "t").alter_columns({"path": "id", "name": "key"})
    seen = pin(newest(tmp_path / "t"), Freshness.DURABLE).opened().replaced_keys
    left = list(seen.others([pa.record_batch({"key": [1, 2, 3]})]))
    assert [batch.column("key").to_pylist() for batch in left] == [[3]]
