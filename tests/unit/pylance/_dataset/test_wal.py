from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, WriterFencedError
from tests.support.memwal_tables import SCHEMA, rows


def _table(path: Path, *pairs: tuple[int, str | None], buckets: int = 4) -> lance.LanceDataset:
    ds = lance.write_dataset(rows(*pairs), path)
    ds.wal.initialize(buckets=buckets)
    return ds


def _by_key(found: pa.Table) -> dict[int, str | None]:
    by_key = {row["id"]: row["name"] for row in found.to_pylist()}
    assert len(by_key) == found.num_rows
    return by_key


def test_writes_are_seen_at_once_and_after_the_merge(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "old"), (2, "old"))
    with ds.wal.writer() as w:
        w.put(rows((2, "new"), (3, "new")))
        w.delete([1])
        assert _by_key(ds.wal.to_table()) == {2: "new", 3: "new"}
        assert _by_key(w.to_table()) == {2: "new", 3: "new"}
        assert _by_key(ds.wal.to_table(freshness="flushed")) == {1: "old", 2: "old"}
    assert _by_key(ds.wal.to_table(freshness="flushed")) == {2: "new", 3: "new"}
    assert _by_key(ds.wal.to_table(freshness="base")) == {1: "old", 2: "old"}
    stats = ds.wal.merge()
    assert stats == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 1}
    assert _by_key(ds.to_table()) == {2: "new", 3: "new"}


def test_readers_take_columns_a_filter_and_a_limit(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "a"), (2, "b"))
    with ds.wal.writer() as w:
        w.put(rows((3, "c")))
        found = ds.wal.scanner(["name"], "id > 1")
        assert found.projected_schema.names == ["name"]
        assert found.dataset_schema == SCHEMA
        assert sorted(found.to_table().column("name").to_pylist()) == ["b", "c"]
        assert (found.count_rows(), ds.wal.count_rows("id > 1")) == (2, 2)
        assert sum(b.num_rows for b in ds.wal.to_batches(limit=2)) == 2
        assert ds.wal.scanner(limit=1).count_rows() == 1
        assert len(found.to_pandas()) == 2


@pytest.mark.parametrize(
    "keys",
    [[1, 3, 9], (1, 3, 9), pa.array([1, 3, 9]), {"id": [1, 3, 9]}, pa.table({"id": [1, 3, 9]})],
)
def test_rows_are_found_by_keys(tmp_path: Path, keys: object) -> None:
    ds = _table(tmp_path / "t", (1, "a"), (2, "b"))
    with ds.wal.writer() as w:
        w.put([{"id": 3, "name": "c"}])
        assert _by_key(ds.wal.get(keys)) == {1: "a", 3: "c"}
        assert sorted(w.get(keys, ["name"]).column("name").to_pylist()) == ["a", "c"]


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


def test_settings_of_the_table_apply_to_its_writers(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    ds.wal.initialize(unsharded=True, max_memtable_rows=2)
    with ds.wal.writer() as w:
        for key in range(5):
            w.put(rows((key, "x")))
        assert len(list((tmp_path / "t/_mem_wal").glob("*/*_gen_*"))) >= 1


def test_a_second_writer_replaces_the_first(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "a"), buckets=1)
    first = ds.wal.writer()
    first.put(rows((1, "first")))
    with ds.wal.writer() as second:
        second.put(rows((1, "second")))
    with pytest.raises(WriterFencedError):
        first.put(rows((1, "late")))
    assert _by_key(ds.wal.to_table()) == {1: "second"}


def test_keys_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "a"))
    with pytest.raises(InvalidRequestError, match="not values of column id"):
        ds.wal.get(["x"])
    with pytest.raises(InvalidRequestError, match="no column id"):
        ds.wal.get(pa.table({"name": ["a"]}))


def test_a_key_of_two_columns_takes_rows_only(tmp_path: Path) -> None:
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.utf8(), nullable=False)]
    ds = lance.write_dataset(pa.table([[1], ["x"]], schema=pa.schema(fields)), tmp_path / "t")
    ds.wal.initialize(key=["a", "b"], buckets=2)
    assert ds.wal.get({"b": ["x"], "a": [1]}).num_rows == 1
    with pytest.raises(InvalidRequestError, match="the key has the columns a, b"):
        ds.wal.get([1])


def test_rows_of_the_log_are_merged_with_a_flush_and_collected(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "a"), buckets=1)
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
    assert _by_key(ds.wal.to_table()) == {1: "b", 2: "b"}


def test_a_table_without_a_mem_wal_says_so(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    for read in (ds.wal.to_table, ds.wal.writer, ds.wal.merge, ds.wal.count_rows, ds.wal.status):
        with pytest.raises(InvalidRequestError, match="the table has no MemWAL"):
            read()


def test_searches_find_rows_that_are_not_merged(tmp_path: Path) -> None:
    vectors = pa.list_(pa.float32(), 2)
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False), ("text", pa.string()), ("v", vectors)]
    )

    def made(*given: tuple[int, str, list[float]]) -> pa.Table:
        return pa.Table.from_pylist(
            [dict(zip(schema.names, row, strict=True)) for row in given], schema=schema
        )

    ds = lance.write_dataset(made((1, "old cat", [0, 0]), (2, "dog", [5, 5])), tmp_path / "t")
    ds.create_scalar_index("text", "INVERTED")
    ds.wal.initialize(key="id", buckets=2)
    with ds.wal.writer() as w:
        w.put(made((1, "bird", [9, 9]), (3, "new cat", [1, 1])))
        assert w.search("cat", columns=["id"])["id"].to_pylist() == [3]
        assert ds.wal.search("cat", freshness="base", columns=["id"])["id"].to_pylist() == [1]
        near = ds.wal.search(nearest={"q": [0.0, 0.0]}, k=2, filter="id > 0")
        assert near["id"].to_pylist() == [3, 2]
    with pytest.raises(InvalidRequestError, match="needs a text or a query vector"):
        ds.wal.search()


def test_a_writer_merges_in_the_background(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "a"), buckets=1)
    with ds.wal.writer(merge_every=timedelta(days=1)) as w:
        w.put(rows((1, "b")))
        w.flush()
        assert w._merger is not None
        w._merger.merge_now()
    assert _by_key(lance.dataset(tmp_path / "t").to_table()) == {1: "b"}


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
