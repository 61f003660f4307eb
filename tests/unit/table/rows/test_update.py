from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidExpressionError, LanceTableError, SchemaMismatchError
from lancelake.format.operations import Update
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from lancelake.table.rows import update
from tests.support.elsewhere import Elsewhere

LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]


def _rows(snapshot: Snapshot) -> dict[int, tuple[str, float]]:
    dataset = lance.dataset(snapshot.location.uri, version=snapshot.version)
    rows = dataset.to_table().to_pylist()
    return {row["id"]: (row["name"], row["weight"]) for row in rows}


def test_values_are_set_where_the_condition_holds(base: Snapshot) -> None:
    before = _rows(base)
    done = update(base, {"name": "concat(name, '!')", "weight": "id"}, "id >= 7 OR id = 1")
    assert done.rows == 4
    changed = {i: (f"n{i}!", float(i)) for i in (1, 7, 8, 9)}
    assert _rows(done.snapshot) == before | changed
    assert list(check(Location.parse(base.location.uri), versions="all")) == []


def test_tasks_that_run_elsewhere_give_the_same(base: Snapshot) -> None:
    done = update(base, {"weight": "id"}, "id > 5", engine=Elsewhere())
    assert done.rows == 4
    assert _rows(done.snapshot)[9] == ("n9", 9.0)


def test_without_a_condition_every_row_is_set(base: Snapshot) -> None:
    done = update(base, {"weight": "weight * 2"})
    assert done.rows == 9
    assert _rows(done.snapshot) == {i: (n, 2 * w) for i, (n, w) in _rows(base).items()}


def test_ids_and_lineage_stay_with_the_rows(base: Snapshot) -> None:
    if not base.manifest.has_stable_row_ids:
        pytest.skip("rows have no ids of their own")
    done = update(base, {"name": "'x'"}, "id = 6")
    dataset = lance.dataset(done.snapshot.location.uri)
    rows = dataset.to_table(columns=["id", *LINEAGE], with_row_id=True).to_pylist()
    assert {row["id"]: row["_rowid"] for row in rows} == {i: i for i in range(10) if i != 2}
    assert [tuple(row[name] for name in LINEAGE) for row in rows if row["id"] == 6] == [(1, 3)]
    assert {row[LINEAGE[1]] for row in rows if row["id"] != 6} == {1}


def test_the_columns_are_recorded_by_their_ids(base: Snapshot) -> None:
    made = update(base, {"weight": "0", "name": "''"}, "id = 3").snapshot.transaction
    assert made is not None
    assert isinstance(made.operation, Update)
    assert made.operation.fields_for_preserving_frag_bitmap == (2, 1)


@pytest.mark.parametrize(
    ("updates", "where"),
    [
        ({}, None),
        ({"missing": "1"}, None),
        ({"name": "missing"}, None),
        ({"weight": "name"}, None),
        ({"weight": "1"}, "id + 1"),
        ({"weight": "1"}, "missing"),
    ],
)
def test_a_refused_update_leaves_the_table_as_it_was(
    base: Snapshot, updates: dict[str, str], where: str | None
) -> None:
    with pytest.raises(LanceTableError):
        update(base, updates, where)
    assert lance.dataset(base.location.uri).version == base.version


def test_a_column_that_must_have_values_refuses_a_null(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    base = lance.write_dataset(pa.table([[1, 2]], schema=schema), tmp_path / "t")._snapshot
    with pytest.raises((SchemaMismatchError, InvalidExpressionError)):
        update(base, {"a": "NULL"}, "a = 1")
    assert lance.dataset(tmp_path / "t").version == 1


def test_changes_of_the_same_row_follow_each_other(base: Snapshot) -> None:
    first = update(base, {"weight": "weight + 1"}, "id = 4")
    second = update(base, {"weight": "weight + 10"}, "id = 4")
    assert second.snapshot.version == first.snapshot.version + 1
    assert _rows(second.snapshot)[4] == ("n4", 17.0)


def test_a_row_deleted_meanwhile_stays_deleted(base: Snapshot) -> None:
    lance.dataset(base.location.uri).delete("id = 4")
    done = update(base, {"weight": "0"}, "id = 4 OR id = 5")
    assert done.rows == 1
    assert 4 not in _rows(done.snapshot)


def test_blobs_of_updated_rows_are_kept(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("data", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
        ]
    )
    table = pa.table([[1, 2, 3], [b"one", None, b"3" * 100_000]], schema=schema)
    base = lance.write_dataset(table, tmp_path / "t", data_storage_version="2.1")._snapshot
    update(base, {"id": "id + 10"}, "id > 1")
    dataset = lance.dataset(tmp_path / "t")
    rows = dataset.to_table(columns=["id"], with_row_id=True).to_pylist()
    blobs = dataset.take_blobs("data", ids=[row["_rowid"] for row in rows])
    found = {row["id"]: blob and blob.read() for row, blob in zip(rows, blobs, strict=True)}
    assert found == {1: b"one", 12: None, 13: b"3" * 100_000}
