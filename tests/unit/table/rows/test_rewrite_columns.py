from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import LocalEngine
from lancelake.errors import InvalidRequestError, LanceTableError, UnsupportedError
from lancelake.format.ids import FragmentId
from lancelake.format.operations import Update, UpdateMode
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from lancelake.table.row_steps import find_rows
from lancelake.table.rows import Rewriting, bind_assignments, is_cheaper, rewrite_columns, update
from tests.support.elsewhere import Elsewhere

ENGINE = LocalEngine(parallelism=2)


def _rows(snapshot: Snapshot) -> dict[int, tuple[str, float]]:
    dataset = lance.dataset(snapshot.location.uri, version=snapshot.version)
    rows = dataset.to_table().to_pylist()
    return {row["id"]: (row["name"], row["weight"]) for row in rows}


def test_only_the_assigned_columns_of_touched_fragments_get_new_files(base: Snapshot) -> None:
    before = _rows(base)
    done = update(base, {"weight": "-weight"}, "id IN (1, 3, 9)", rewriting=Rewriting.COLUMNS)
    assert done.rows == 3
    assert _rows(done.snapshot) == before | {i: (f"n{i}", -1.5 * i) for i in (1, 3, 9)}
    fields = [[file.fields for file in f.files] for f in done.snapshot.manifest.fragments]
    assert fields == [[(0, 1, -2), (2,)], [(0, 1, 2)], [(0, 1, -2), (2,)]]
    assert list(check(Location.parse(base.location.uri), versions="all")) == []


def test_the_change_says_what_it_rewrote(base: Snapshot) -> None:
    made = update(
        base, {"weight": "0", "name": "''"}, "id = 9", rewriting=Rewriting.COLUMNS
    ).snapshot.transaction
    assert made is not None
    assert isinstance(made.operation, Update)
    assert made.operation.update_mode is UpdateMode.REWRITE_COLUMNS
    assert made.operation.fields_modified == (2, 1)
    assert made.operation.new_fragments == ()


def test_rows_are_dated_where_they_changed(base: Snapshot) -> None:
    if not base.manifest.has_stable_row_ids:
        pytest.skip("rows have no lineage")
    done = update(base, {"weight": "0"}, "id >= 8", rewriting=Rewriting.COLUMNS)
    dataset = lance.dataset(done.snapshot.location.uri)
    columns = ["id", "_row_last_updated_at_version"]
    rows = dataset.to_table(columns=columns, with_row_id=True).to_pylist()
    assert {r["id"]: r["_rowid"] for r in rows} == {i: i for i in range(10) if i != 2}
    assert {r["id"] for r in rows if r["_row_last_updated_at_version"] == 3} == {8, 9}


def test_an_expression_is_not_asked_about_rows_that_stay(base: Snapshot) -> None:
    done = update(
        base, {"weight": "10 / (id - 4)"}, "id != 4 AND id < 7", rewriting=Rewriting.COLUMNS
    )
    assert _rows(done.snapshot)[4] == ("n4", 6.0)
    assert _rows(done.snapshot)[6] == ("n6", 5.0)


def test_columns_rewritten_twice_leave_no_dead_file(base: Snapshot) -> None:
    first = update(base, {"weight": "weight + 1"}, rewriting=Rewriting.COLUMNS)
    done = update(first.snapshot, {"weight": "weight + 1"}, rewriting=Rewriting.COLUMNS)
    assert [len(f.files) for f in done.snapshot.manifest.fragments] == [2, 2, 2]
    assert _rows(done.snapshot)[4] == ("n4", 8.0)


def test_nothing_found_rewrites_nothing(base: Snapshot) -> None:
    done = update(base, {"weight": "0"}, "id = 77", rewriting=Rewriting.COLUMNS)
    assert done.rows == 0
    assert _rows(done.snapshot) == _rows(base)


def test_a_row_deleted_meanwhile_stays_deleted(base: Snapshot) -> None:
    lance.dataset(base.location.uri).delete("id = 4")
    done = update(base, {"weight": "0"}, "id IN (4, 5)", rewriting=Rewriting.COLUMNS)
    assert done.rows == 1
    assert 4 not in _rows(done.snapshot)


def test_tasks_run_after_they_were_pickled(base: Snapshot) -> None:
    assignments = bind_assignments({"weight": "1"}, base.manifest.schema)
    (made,) = rewrite_columns(base, {FragmentId(1): BitMap([0])}, assignments, Elsewhere())
    assert [file.fields for file in made.files] == [(0, 1, -2), (2,)]


@pytest.fixture
def wide(tmp_path: Path) -> Snapshot:
    """Return a table whose rows are mostly a vector."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 100 * 256, pa.float32()), 256)
    table = pa.table({"id": range(100), "n": range(100), "v": vectors})
    return lance.write_dataset(table, tmp_path / "w", max_rows_per_file=50)._snapshot


@pytest.mark.parametrize(
    ("where", "column", "expected"),
    [
        (None, "n", True),
        ("id % 2 = 0", "n", True),
        ("id = 3", "n", False),
        (None, "v", False),
    ],
)
def test_columns_are_rewritten_where_that_moves_clearly_fewer_bytes(
    wide: Snapshot, where: str | None, column: str, expected: bool
) -> None:
    assignments = bind_assignments({column: column}, wide.manifest.schema)
    assert is_cheaper(wide, find_rows(wide, where, ENGINE), assignments) is expected
    made = update(wide, {column: column}, where).snapshot.transaction
    assert made is not None
    assert isinstance(made.operation, Update)
    by_columns = made.operation.update_mode is UpdateMode.REWRITE_COLUMNS
    assert by_columns is expected


def test_columns_that_are_stored_in_another_shape_are_not_rewritten_alone(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "d": pa.array(["a", "b"]).dictionary_encode()})
    base = lance.write_dataset(table, tmp_path / "t")._snapshot
    with pytest.raises(UnsupportedError, match="cannot be rewritten separately: d"):
        update(base, {"d": "'x'"}, rewriting=Rewriting.COLUMNS)
    assert update(base, {"d": "'x'"}).rows == 2


def test_a_refused_value_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
    base = lance.write_dataset(pa.table([[1, 2], [3, 4]], schema=schema), tmp_path / "t")._snapshot
    with pytest.raises(LanceTableError):
        update(base, {"a": "NULL"}, "a = 1", rewriting=Rewriting.COLUMNS)
    assert lance.dataset(tmp_path / "t").version == 1


def test_the_face_takes_the_mode_by_name(base: Snapshot) -> None:
    dataset = lance.dataset(base.location.uri)
    dataset.update({"weight": "0"}, where="id = 9", write_mode="rewrite_columns")
    assert [len(f.data_files()) for f in dataset.get_fragments()] == [1, 1, 2]
    with pytest.raises(
        InvalidRequestError, match="valid modes: auto, rewrite_rows, rewrite_columns"
    ):
        dataset.update({"weight": "0"}, write_mode="sideways")  # type: ignore[arg-type]
