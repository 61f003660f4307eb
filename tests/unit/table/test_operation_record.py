"""What transactions record about themselves."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Latest, open_snapshot
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import Append, CreateIndex, Project
from lancelake.format.schema import Schema
from lancelake.storage.location import Session
from lancelake.table import operation_record
from lancelake.table.history import history
from lancelake.table.operation_record import (
    NO_WORK,
    Record,
    declare_engine,
    metrics_text,
    record_of,
    recorded,
)
from lancelake.table.publish import CommitChoices, new_transaction
from lancelake.table.rows import delete
from tests.support.set_clock import ManualClock

ROWS = pa.table({"id": [1, 2, 3], "n": [1, 2, 3]})


@pytest.fixture
def ds(tmp_path: Path) -> lancelake.LanceDataset:
    """Return a table of three rows."""
    return lancelake.write_dataset(ROWS, tmp_path / "t.lance")


def newest(ds: lancelake.LanceDataset) -> Record:
    snapshot = open_snapshot(ds._snapshot.location, Latest())
    return record_of(snapshot.transaction)


def upsert(ds: lancelake.LanceDataset) -> None:
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [2, 4], "n": [0, 0]}))


@pytest.mark.parametrize(
    ("act", "name", "rows"),
    [
        (lambda _: None, "WRITE", {"inserted": 3}),
        (lambda ds: ds.insert(ROWS), "WRITE", {"inserted": 3}),
        (lambda ds: ds.insert(ROWS, mode="overwrite"), "WRITE", {"inserted": 3, "deleted": 3}),
        (lambda ds: ds.delete("id < 3"), "DELETE", {"deleted": 2}),
        (lambda ds: ds.update({"n": "0"}, where="id = 1"), "UPDATE", {"updated": 1}),
        (upsert, "MERGE", {"inserted": 1, "updated": 1}),
        (lambda ds: ds.add_columns({"m": "n"}), "ADD COLUMNS", {}),
        (lambda ds: ds.drop_columns(["n"]), "DROP COLUMNS", {}),
        (lambda ds: ds.create_scalar_index("id", "BTREE"), "CREATE INDEX", {}),
        (lambda ds: ds.update_config({"a": "b"}), "SET PROPERTIES", {}),
        (lambda ds: ds.restore(), "RESTORE", {}),
    ],
)
def test_commits_are_named_and_counted(
    ds: lancelake.LanceDataset,
    act: Callable[[lancelake.LanceDataset], object],
    name: str,
    rows: dict[str, int],
) -> None:
    act(ds)
    found = newest(ds)
    counted = {key: value for key, value in found.metrics.items() if key.startswith("rows_")}
    assert found.name == name
    assert {k: v for k, v in counted.items() if v} == {f"rows_{k}": v for k, v in rows.items()}


def test_a_compaction_counts_its_files(ds: lancelake.LanceDataset) -> None:
    ds.insert(ROWS)
    ds.optimize.compact_files()
    names = [record_of(s.transaction).name for s in history(ds._snapshot.location)]
    found = newest(ds)
    assert names == ["WRITE", "WRITE", "RESERVE FRAGMENTS", "OPTIMIZE"]
    assert (found.metrics["files_removed"], found.metrics["files_added"]) == (2, 1)
    assert found.metrics["bytes_removed"] > found.metrics["bytes_added"] > 0


def test_the_time_of_the_whole_operation_is_recorded(ds: lancelake.LanceDataset) -> None:
    clock = ManualClock()
    location = replace(ds._snapshot.location, session=Session(clock=clock))
    begun = CommitChoices().named("CLEAN", location)
    clock.sleep(1.5)
    done = delete(replace(ds._snapshot, location=location), "id = 1", choices=begun)
    found = record_of(done.snapshot.transaction)
    assert (found.name, found.metrics["milliseconds"]) == ("CLEAN", 1500)


def test_user_and_engine_are_recorded(
    ds: lancelake.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation_record, "_DECLARED", {})
    declare_engine("test 1.0")
    ds.delete("id = 1")
    assert (newest(ds).user, newest(ds).engine) == (getpass.getuser(), "test 1.0")


def test_what_users_set_is_kept_apart(ds: lancelake.LanceDataset) -> None:
    ds = lancelake.write_dataset(ROWS, ds.uri, mode="append", transaction_properties={"a": "b"})
    assert dict(newest(ds).properties) == {"a": "b"}


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (Append(fragments=()), "WRITE"),
        (Project(schema=Schema(fields=())), "CHANGE COLUMNS"),
        (CreateIndex(new_indices=()), "DROP INDEX"),
    ],
)
def test_what_others_wrote_is_named_after_its_operation(operation: Append, name: str) -> None:
    assert record_of(new_transaction(operation, 1)).name == name


def test_without_a_transaction_nothing_is_known() -> None:
    assert record_of(None).name == "?"


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", "[" * 100_000, '{"a": "b", "c": 1e999, "d": true}']
)
def test_metrics_that_are_none_are_dropped(text: str) -> None:
    transaction = recorded(new_transaction(Append(fragments=()), 1), None, NO_WORK, 0.0)
    broken = FrozenMap({**transaction.properties, operation_record._METRICS: text})
    assert dict(record_of(replace(transaction, properties=broken)).metrics) == {}


def test_metrics_are_described() -> None:
    found = {"rows_inserted": 1200, "rows_updated": 0, "rows_deleted": 3, "milliseconds": 5}
    assert metrics_text(found) == "1,200 inserted, 3 deleted"


def test_steps_of_a_mem_wal_are_named(tmp_path: Path) -> None:
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int64())]
    ds = lancelake.write_dataset(ROWS.cast(pa.schema(columns)), tmp_path / "t.lance")
    ds.wal.initialize(key=["id"], buckets=1)
    assert newest(ds).name == "ADD MEMWAL"
    writer = ds.wal.writer()
    writer.put(pa.table({"id": [2, 9], "n": [5, 5]}, schema=pa.schema(columns)))
    writer.close()
    ds.wal.merge()
    found = newest(ds)
    counts = [found.metrics[f"rows_{kind}"] for kind in ("inserted", "updated")]
    assert (found.name, counts) == ("MERGE", [1, 1])
