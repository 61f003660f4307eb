from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, SchemaMismatchError, WriterFencedError
from tests.support.memwal_tables import by_key, rows, with_wal
from tests.support.raw_text import strings


def test_writes_are_seen_at_once_and_after_the_merge(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "old"), (2, "old"))
    with ds.wal.writer() as w:
        w.put(rows((2, "new"), (3, "new")))
        w.delete([1])
        assert by_key(ds.wal.to_table()) == {2: "new", 3: "new"}
        assert by_key(w.to_table()) == {2: "new", 3: "new"}
        assert by_key(ds.wal.to_table(freshness="flushed")) == {1: "old", 2: "old"}
    assert by_key(ds.wal.to_table(freshness="flushed")) == {2: "new", 3: "new"}
    assert by_key(ds.wal.to_table(freshness="base")) == {1: "old", 2: "old"}
    stats = ds.wal.merge()
    assert stats == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 1}
    assert by_key(ds.to_table()) == {2: "new", 3: "new"}


def test_a_key_is_declared_for_a_table_without_one(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("k", pa.utf8(), nullable=False), pa.field("v", pa.int64())])
    ds = lance.write_dataset(pa.table([["a"], [1]], schema=schema), tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="a MemWAL needs a table with a primary key"):
        ds.wal.initialize()
    with pytest.raises(InvalidRequestError, match="no column x"):
        ds.wal.initialize(key="x")
    ds.wal.initialize(buckets=8, key="k")
    with ds.wal.writer() as w:
        w.put({"k": ["a", "b"], "v": [2, 3]})
    assert ds.wal.to_table().sort_by("k").to_pydict() == {"k": ["a", "b"], "v": [2, 3]}


def test_a_key_other_than_the_tables_is_refused(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    with pytest.raises(InvalidRequestError, match="primary key is id, not name"):
        ds.wal.initialize(key="name")
    with pytest.raises(InvalidRequestError, match="by buckets, by value, or not at all"):
        ds.wal.initialize(buckets=2, unsharded=True)
    assert ds.latest_version == 1


def test_rows_of_each_value_have_their_region(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    ds.wal.initialize(by_value_of="id")
    with ds.wal.writer() as w:
        w.put(rows((1, "b"), (2, "c")))
    assert len(list((tmp_path / "t/_mem_wal").iterdir())) == 2


def test_rows_of_the_log_are_merged_with_a_flush_and_collected(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "a"), buckets=1)
    w = ds.wal.writer()
    w.put(rows((1, "b"), (2, "b")))
    (region,) = ds.wal.status().regions
    assert (region.tail_entries, region.tail_rows, region.merged_generation) == (1, 2, 0)
    assert ds.wal.merge()["num_inserted_rows"] == 0
    assert ds.wal.merge(flush=True)["num_inserted_rows"] == 1
    with pytest.raises(WriterFencedError):
        w.put(rows((1, "late")))
    found = ds.wal.collect_garbage(older_than=timedelta(), dry_run=True)
    assert [region.trimmed for region in found.regions] == [(1,)]
    ds.wal.collect_garbage(older_than=timedelta())
    assert not list((tmp_path / "t/_mem_wal").glob("*/*_gen_1/data/*"))
    assert by_key(ds.wal.to_table()) == {1: "b", 2: "b"}


def test_a_table_without_a_mem_wal_says_so(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    for read in (ds.wal.to_table, ds.wal.writer, ds.wal.merge, ds.wal.count_rows, ds.wal.status):
        with pytest.raises(InvalidRequestError, match="the table has no MemWAL"):
            read()


def test_a_dropped_mem_wal_leaves_the_merged_rows(tmp_path: Path) -> None:
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata=key)])
    ds = lance.write_dataset(pa.table([[1]], schema=schema), tmp_path / "dropped")
    ds.wal.initialize(unsharded=True)
    with ds.wal.writer() as writer:
        writer.put(pa.table([[2]], schema=schema))
    with pytest.raises(InvalidRequestError, match="not merged"):
        ds.wal.drop()
    ds.wal.merge()
    ds.wal.drop()
    assert sorted(ds.to_table()["id"].to_pylist()) == [1, 2]
    ds.wal.initialize(unsharded=True)
    assert sorted(ds.wal.to_table()["id"].to_pylist()) == [1, 2]


def test_no_put_brings_invalid_text_in(tmp_path: Path) -> None:
    ds = with_wal(tmp_path / "t", (1, "old"))
    new = pa.table([pa.array([2, 3]), strings(b"ok", b"\xff")], names=ds.schema.names)
    with ds.wal.writer() as w, pytest.raises(SchemaMismatchError, match="not UTF-8"):
        w.put(new)
    assert by_key(ds.wal.to_table()) == {1: "old"}
