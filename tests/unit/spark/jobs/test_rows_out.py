"""Rows of a merge as executors write them, with columns that Spark does not read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InternalError, InvalidRequestError
from lancelake.spark.jobs import rows_out
from lancelake.spark.jobs.rows_out import (
    ADDRESS,
    REMOVES,
    ROW_ID,
    CarriedColumns,
    Parts,
    WriteParts,
    combine,
    rows_at_once,
)
from lancelake.table.operation_record import RowCounts
from lancelake.table.publish import DEFAULT_CHOICES
from lancelake.table.row_steps import commit_rows, row_files

FINE = {
    "time": pa.array([1_000_000_001, None, 3], pa.timestamp("ns")),
    "wide": pa.array([Decimal("1.50"), None, Decimal(3)], pa.decimal256(50, 2)),
    "half": pa.array(np.array([0.5, 1.5, 2.5], np.float16)),
    "word": pa.array(["a", None, "b"]).dictionary_encode(),
    "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "part": pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.uint8())])),
}


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    """Return a version of three rows whose types Spark does not have."""
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), **FINE})
    written = lancelake.write_dataset(table, tmp_path / "t.lance", data_storage_version="2.2")
    return written._snapshot


def batch(addresses: list[int | None], removes: list[bool], **columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            **{name: pa.array(values) for name, values in columns.items()},
            ADDRESS: pa.array(addresses, pa.int64()),
            ROW_ID: pa.array(addresses, pa.int64()),
            REMOVES: pa.array(removes),
        }
    )


def rewritten(base: Snapshot, rows: pa.RecordBatch, names: set[str]) -> pa.Table:
    """Replace rows of the table, with carried columns, and read all rows by their ids."""
    carried = CarriedColumns.of(base, names)
    work = WriteParts(task=row_files(base), key=None, keeps_row_ids=False, carried=carried)
    parts = combine([work(iter([rows]))])
    commit_rows(base, parts.change, DEFAULT_CHOICES)
    return lancelake.LanceDataset(base.location.uri).to_table().sort_by("id")


def test_updated_rows_keep_carried_columns_as_they_are_stored(base: Snapshot) -> None:
    before = lancelake.LanceDataset(base.location.uri).to_table()
    rows = batch([2, 0, 1], [False] * 3, id=[3, 1, 2])
    assert rewritten(base, rows, set(FINE)).equals(before)


def test_carried_columns_replace_those_that_spark_left_empty(base: Snapshot) -> None:
    rows = batch([1], [False], id=[20], time=pa.nulls(1), half=pa.nulls(1))
    found = rewritten(base, rows, set(FINE)).to_pylist()
    assert [row["half"] for row in found] == [0.5, 2.5, 1.5]


def test_new_rows_have_what_spark_computed_and_nulls(base: Snapshot) -> None:
    rows = batch([None], [False], id=[9], half=pa.array(np.array([9], np.float16)))
    found = rewritten(base, rows, set(FINE)).to_pylist()
    assert found[-1] == {"id": 9, **dict.fromkeys(FINE), "half": 9.0}


def test_deleted_rows_need_no_columns(base: Snapshot) -> None:
    found = rewritten(base, batch([0, 2], [True, True]), {"id", *FINE})
    assert found.column("id").to_pylist() == [2]


def test_rows_whose_columns_are_all_carried_are_kept(base: Snapshot) -> None:
    before = lancelake.LanceDataset(base.location.uri).to_table()
    assert rewritten(base, batch([0, 1], [False, False]), {"id", *FINE}).equals(before)


def test_updated_rows_keep_their_blobs(tmp_path: Path) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    columns = [pa.array([1, 2], pa.int64()), pa.array([b"one", b"two"], pa.large_binary())]
    table = pa.table(columns, schema=pa.schema([("id", pa.int64()), blob]))
    base = lancelake.write_dataset(table, tmp_path / "t.lance")._snapshot
    rewritten(base, batch([0], [False], id=[5]), {"blob"})
    made = lancelake.LanceDataset(tmp_path / "t.lance")
    addresses = made.to_table(with_row_address=True, columns=["id"]).column("_rowaddr")
    found = [file.readall() for file in made.take_blobs("blob", addresses=addresses.to_pylist())]
    assert found == [b"two", b"one"]


def test_updated_and_new_rows_in_one_batch_are_refused(base: Snapshot) -> None:
    rows = batch([0, None], [False, False], id=[1, 9])
    with pytest.raises(InternalError, match="in one batch"):
        rewritten(base, rows, set(FINE))


def test_wide_rows_are_fetched_in_smaller_parts(
    base: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rows_at_once(1) > rows_at_once(2_000) > rows_at_once(1_000_000) > 0
    before = lancelake.LanceDataset(base.location.uri).to_table()
    monkeypatch.setattr(rows_out, "_LEAST_ROWS", 1)
    monkeypatch.setattr(rows_out, "_VALUES_AT_ONCE", len(FINE))
    rows = batch([0, 1, 2], [False] * 3, id=[1, 2, 3])
    assert rewritten(base, rows, set(FINE)).equals(before)


def merged(base: Snapshot, *batches: pa.RecordBatch) -> Parts:
    work = WriteParts(task=row_files(base), key=None, keeps_row_ids=False)
    parts = [work(iter([rows])) for rows in batches]
    return combine(parts, describe=lambda address: f"the row at {address}")


def test_a_row_that_is_deleted_twice_is_deleted_once(base: Snapshot) -> None:
    rows = batch([0, 2], [True, True], id=[0, 0])
    found = merged(base, rows, rows)
    assert found.added.counts == RowCounts(deleted=2)
    assert {i: list(offsets) for i, offsets in found.gone.items()} == {0: [0, 2]}


@pytest.mark.parametrize("other", [True, False], ids=["deleted", "updated"])
def test_a_row_that_is_also_updated_is_named(base: Snapshot, other: bool) -> None:
    update = batch([1], [False], id=[2], **{name: pa.nulls(1, a.type) for name, a in FINE.items()})
    again = batch([1], [True], id=[2]) if other else update
    with pytest.raises(InvalidRequestError, match=r"Ambiguous merge.*the row at 1; .*: 1\)"):
        merged(base, update, again)
