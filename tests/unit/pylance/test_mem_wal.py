from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.memwal import wal_files
from tests.support.memwal_tables import SCHEMA, keys, rows

BUCKET = str(wal_files.bucket_region(0))


def _table(path: Path, *pairs: tuple[int, str | None]) -> lance.LanceDataset:
    ds = lance.write_dataset(rows(*pairs), path)
    ds.initialize_mem_wal(bucket_column="id", num_buckets=1)
    return ds


def _generation(path: Path, number: int) -> str:
    (found,) = path.glob(f"_mem_wal/*/*_gen_{number}")
    return found.name


def test_details_are_those_that_were_given(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    assert ds.mem_wal_index_details() is None
    ds.initialize_mem_wal(bucket_column="id", num_buckets=3, max_memtable_rows=5)
    found = ds.mem_wal_index_details()
    assert found is not None
    assert (found["num_shards"], found["maintain_all_indexes"]) == (3, True)
    assert found["writer_config_defaults"]["max_memtable_rows"] == "5"
    (spec,) = found["sharding_specs"]
    assert spec["fields"][0]["parameters"] == {"num_buckets": "3"}
    assert spec["fields"][0]["expression"] is None


def test_sharding_that_is_not_clear_is_refused(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    with pytest.raises(ValueError, match="requires both"):
        ds.initialize_mem_wal(bucket_column="id")
    with pytest.raises(OSError, match="at most one sharding mode"):
        ds.initialize_mem_wal(identity_column="id", unsharded=True)
    with pytest.raises(UnsupportedError, match="not maintained"):
        ds.initialize_mem_wal(maintained_indexes=["x"])
    assert ds.latest_version == 1


def test_a_shard_writer_writes_deletes_and_reads(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "base"), (2, "base"))
    with ds.mem_wal_writer(BUCKET) as w:
        w.put(rows((2, "new"), (3, "new")))
        w.delete(keys(1))
        found = w.lsm_scanner().project(["id"]).with_memtable_gen().to_table()
        assert found.to_pydict() == {"id": [2, 3], "_memtable_gen": [1, 1]}
        assert w.memtable_stats()["row_count"] == 3
        assert (w.shard_id, w.stats()["put_count"], w.stats()["wal_flush_count"]) == (BUCKET, 2, 2)
    with pytest.raises(OSError, match="closed"):
        w.put(rows((1, "x")))
    assert (w.stats()["put_count"], w.memtable_stats()["row_count"]) == (2, 0)


def test_scans_of_snapshots_leave_merged_generations_out(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "base"))
    with ds.mem_wal_writer(BUCKET) as w:
        w.put(rows((1, "merged"), (2, "merged")))
    shard = lance.ShardSnapshot(BUCKET).with_spec_id(1).with_current_generation(2)
    shard.with_sstable(1, _generation(tmp_path / "t", 1))
    scan = lance.LsmScanner.from_snapshots(ds, [shard]).filter("id = 1").limit(5)
    assert scan.to_batch().to_pylist() == [{"id": 1, "name": "merged"}]
    ds.wal.merge()
    ds.update({"name": "'direct'"}, where="id = 1")
    scan = lance.LsmScanner.from_snapshots(ds, [shard]).filter("id = 1")
    assert scan.to_table().to_pylist() == [{"id": 1, "name": "direct"}]
    assert scan.count_rows() == 1


def test_a_key_is_looked_up(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "base"), (2, "base"))
    with ds.mem_wal_writer(BUCKET) as w:
        w.put(rows((2, "new")))
    shard = lance.ShardSnapshot(BUCKET).with_sstable(1, _generation(tmp_path / "t", 1))
    planner = lance.LsmPointLookupPlanner(ds, [shard], ["id"])
    plan = planner.plan_lookup(pa.array([2]), ["name"])
    assert plan.to_table().to_pylist() == [{"name": "new"}]
    assert (plan.schema.names, plan.dataset_schema.names) == (["name"], ["id", "name"])
    assert f"Shard {BUCKET}: generations=[1]" in plan.explain()
    assert planner.plan_lookup(pa.array([9])).to_reader().read_all().num_rows == 0
    with pytest.raises(ValueError, match="exactly one row, got 2"):
        planner.plan_lookup(pa.array([1, 2]))
    with pytest.raises(InvalidRequestError, match="primary key is id, not name"):
        lance.LsmPointLookupPlanner(ds, [shard], ["name"])


def test_compacted_generations_are_recorded_with_a_merge(tmp_path: Path) -> None:
    ds = _table(tmp_path / "t", (1, "base"))
    with ds.mem_wal_writer(BUCKET) as w:
        w.put(rows((2, "new")))
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.mark_sstables_as_compacted([lance.CompactedSsTable(BUCKET, 1)])
    builder.execute(rows((2, "new")))
    assert ds.wal.merge() == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
    assert ds.wal.count_rows() == 2


def test_a_sharding_spec_is_evaluated(tmp_path: Path) -> None:
    ds = lance.write_dataset(rows((1, "a")), tmp_path / "t")
    field = lance.ShardingField("bucket", [0], "bucket", None, "int32", {"num_buckets": "8"})
    batch = pa.record_batch({"id": [1, 2, 3]})
    found = lance.evaluate_sharding_spec(batch, lance.ShardingSpec(1, [field]), ds.lance_schema)
    assert found.to_pydict() == {"bucket": [4, 4, 3]}
    plain = lance.ShardingSpec(1, [lance.ShardingField("own_name", [0], "identity")])
    found = lance.evaluate_sharding_spec(batch, plain, ds.lance_schema)
    assert found.to_pydict() == {"own_name": [1, 2, 3]}
    with pytest.raises(TypeError, match="RecordBatch"):
        lance.evaluate_sharding_spec(batch.to_pylist(), plain, ds.lance_schema)


def test_an_invalid_shard_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a UUID"):
        lance.ShardSnapshot("x")
    with pytest.raises(ValueError, match="not a UUID"):
        _table(tmp_path / "t", (1, "a")).mem_wal_writer("x")


def test_vectors_are_searched_in_shards(tmp_path: Path) -> None:
    vectors = pa.list_(pa.float32(), 2)
    schema = pa.schema([*SCHEMA, ("v", vectors)])

    def made(*given: tuple[int, list[float]]) -> pa.Table:
        return pa.table(
            [[k for k, _ in given], [str(k) for k, _ in given], [v for _, v in given]],
            schema=schema,
        )

    ds = lance.write_dataset(made((1, [0, 0]), (2, [5, 5])), tmp_path / "t")
    ds.initialize_mem_wal(bucket_column="id", num_buckets=1)
    with ds.mem_wal_writer(BUCKET) as w:
        w.put(made((1, [9, 9]), (3, [1, 1])))
    shard = lance.ShardSnapshot(BUCKET).with_sstable(1, _generation(tmp_path / "t", 1))
    planner = lance.LsmVectorSearchPlanner(ds, [shard], "v", filter="id < 10")
    plan = planner.plan_search(pa.array([0, 0], pa.float32()), k=2, columns=["id"])
    assert plan.to_table().to_pydict() == {"id": [3, 2], "_distance": [2.0, 50.0]}
    assert plan.schema.names == ["id", "_distance"]
    for wrong in ({"k": 0}, {"nprobes": 0}, {"overfetch_factor": 0.5}):
        with pytest.raises(ValueError, match="must be"):
            planner.plan_search(pa.array([0, 0], pa.float32()), **wrong)
