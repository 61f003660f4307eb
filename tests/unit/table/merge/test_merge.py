from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import LocalEngine
from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import Update
from lancelake.maintenance.check.run import check
from lancelake.storage.location import Location
from lancelake.table.merge.clauses import (
    DeleteRow,
    Duplicates,
    Fail,
    InsertAll,
    InsertValues,
    MergeSpec,
    UpdateAll,
    UpdateSet,
)
from lancelake.table.merge.run import merge
from lancelake.table.operation_record import RowCounts
from lancelake.table.row_steps import RowsChanged
from tests.support.elsewhere import Elsewhere

Row = tuple[str | None, float | None]


def _source(*rows: tuple[Any, ...], names: tuple[str, ...] = ("id", "name", "weight")) -> pa.Table:
    types = {"id": pa.int64(), "name": pa.string(), "weight": pa.float64()}
    schema = pa.schema([(name, types.get(name, pa.int64())) for name in names])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


SOURCE = _source((3, "a", 0.0), (9, "b", 1.0), (20, "c", 2.0))
UPSERT = MergeSpec(on=("id",), matched=(UpdateAll(),), not_matched=(InsertAll(),))


def _merge(base: Snapshot, source: pa.Table, spec: MergeSpec, **options: Any) -> RowsChanged:
    done = merge(base, source.to_reader(), spec, **options)
    assert list(check(Location.parse(base.location.uri), versions="all")) == []
    return done


def _rows(snapshot: Snapshot) -> dict[int, Row]:
    dataset = lance.dataset(snapshot.location.uri, version=snapshot.version)
    rows = dataset.to_table().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["name"], row["weight"]) for row in rows}


def _set(**values: str) -> FrozenMap[str, str]:
    return FrozenMap(values)


def test_matching_rows_are_updated_and_others_inserted(base: Snapshot) -> None:
    done = _merge(base, SOURCE, UPSERT)
    expected = _rows(base) | {3: ("a", 0.0), 9: ("b", 1.0), 20: ("c", 2.0)}
    assert _rows(done.snapshot) == expected
    assert done.counts == RowCounts(inserted=1, updated=2, deleted=0)


def test_a_deleted_row_is_not_matched(base: Snapshot) -> None:
    done = _merge(base, _source((2, "again", 0.0)), UPSERT)
    assert done.counts == RowCounts(inserted=1, updated=0, deleted=0)


def test_row_ids_stay_with_updated_rows(base: Snapshot) -> None:
    if not base.manifest.has_stable_row_ids:
        pytest.skip("rows have no ids of their own")
    done = _merge(base, SOURCE, UPSERT)
    rows = lance.dataset(done.snapshot.location.uri).to_table(with_row_id=True).to_pylist()
    expected = {i: i for i in range(10) if i != 2} | {20: 10}
    assert {row["id"]: row["_rowid"] for row in rows} == expected


def test_the_first_clause_whose_condition_holds_acts(base: Snapshot) -> None:
    spec = MergeSpec(
        on=("id",),
        matched=(
            DeleteRow(condition="target.id = 3"),
            UpdateSet(
                values=_set(name="concat(target.name, source.name)"), condition="source.id < 9"
            ),
            UpdateAll(condition="source.weight > 100"),
        ),
        not_matched=(
            InsertValues(values=_set(id="source.id", name="'made'"), condition="source.id < 25"),
            InsertAll(condition="source.id > 30"),
        ),
    )
    source = _source(
        (3, "a", 0.0), (4, "b", 1.0), (9, "c", 1.0), (20, "d", 2.0), (27, "e", 0.0), (31, "f", 3.0)
    )
    done = _merge(base, source, spec)
    expected = _rows(base) | {4: ("n4b", 6.0), 20: ("made", None), 31: ("f", 3.0)}
    del expected[3]
    assert _rows(done.snapshot) == expected
    assert done.counts == RowCounts(inserted=2, updated=1, deleted=1)


def test_rows_that_the_source_lacks_are_updated_or_deleted(base: Snapshot) -> None:
    spec = MergeSpec(
        on=("id",),
        matched=(UpdateAll(),),
        not_matched_by_source=(
            UpdateSet(values=_set(weight="-weight"), condition="id < 4"),
            DeleteRow(condition="id > 6"),
        ),
    )
    done = _merge(base, SOURCE, spec)
    assert _rows(done.snapshot) == {
        0: ("n0", -0.0),
        1: ("n1", -1.5),
        3: ("a", 0.0),
        4: ("n4", 6.0),
        5: ("n5", 7.5),
        6: ("n6", 9.0),
        9: ("b", 1.0),
    }
    assert done.counts == RowCounts(inserted=0, updated=4, deleted=2)


def test_a_source_of_keys_alone_can_delete(base: Snapshot) -> None:
    spec = MergeSpec(on=("id",), matched=(DeleteRow(),))
    done = _merge(base, SOURCE.select(["id"]), spec)
    assert done.counts == RowCounts(inserted=0, updated=0, deleted=2)
    assert sorted(_rows(done.snapshot)) == [0, 1, 4, 5, 6, 7, 8]


def test_columns_that_the_source_lacks_keep_their_values(base: Snapshot) -> None:
    done = _merge(base, SOURCE.select(["weight", "id"]), UPSERT)
    assert _rows(done.snapshot)[3] == ("n3", 0.0)
    assert _rows(done.snapshot)[20] == (None, 2.0)


def test_rows_of_constants_are_inserted_once_for_each_row(base: Snapshot) -> None:
    clause = InsertValues(values=_set(name="'fixed'"))
    spec = MergeSpec(on=("id",), not_matched=(clause,))
    done = merge(base, _source((20, "", 0.0), (21, "", 0.0)).to_reader(), spec)
    rows = lance.dataset(done.snapshot.location.uri).to_table(filter="id IS NULL").to_pylist()
    assert rows == [{"id": None, "name": "fixed", "weight": None}] * 2


def test_keys_with_a_null_match_nothing(base: Snapshot) -> None:
    source = _source((None, "x", 0.0), (None, "y", 0.0))
    for count in (1, 2):
        done = merge(base, source.to_reader(), UPSERT)
        assert done.counts == RowCounts(inserted=2, updated=0, deleted=0)
        found = lance.dataset(base.location.uri)
        assert found.count_rows("id IS NULL") == 2 * count


def test_several_columns_can_be_the_key(base: Snapshot) -> None:
    spec = MergeSpec(on=("id", "name"), matched=(UpdateAll(),), not_matched=(InsertAll(),))
    source = _source((3, "n3", 100.0), (4, "other", 200.0))
    done = merge(base, source.to_reader(), spec)
    assert done.counts == RowCounts(inserted=1, updated=1, deleted=0)
    rows = lance.dataset(base.location.uri).to_table(filter="id IN (3, 4)").to_pylist()
    found = sorted((row["id"], row["name"], row["weight"]) for row in rows)
    assert found == [(3, "n3", 100.0), (4, "n4", 6.0), (4, "other", 200.0)]


def test_every_row_with_the_key_is_updated(base: Snapshot) -> None:
    lance.write_dataset(_source((3, "twin", 0.0)), base.location.uri, mode="append")
    done = merge(base, _source((3, "same", 1.0)).to_reader(), UPSERT)
    newest = merge(done.snapshot, _source((3, "same", 1.0)).to_reader(), UPSERT)
    assert newest.counts == RowCounts(inserted=0, updated=2, deleted=0)


@pytest.mark.parametrize("key", [3, 30])
def test_source_rows_that_share_a_key_are_refused_with_the_key(base: Snapshot, key: int) -> None:
    source = _source((key, "a", 0.0), (5, "x", 0.0), (key, "b", 1.0))
    with pytest.raises(InvalidRequestError, match=rf"Ambiguous merge.*id = {key}"):
        merge(base, source.to_reader(), UPSERT)
    assert lance.dataset(base.location.uri).version == base.version


@pytest.mark.parametrize("key", [3, 30])
def test_the_last_source_row_with_a_key_wins_if_asked(base: Snapshot, key: int) -> None:
    spec = MergeSpec(
        on=("id",),
        matched=(UpdateAll(),),
        not_matched=(InsertAll(),),
        duplicates=Duplicates.LAST_WINS,
    )
    source = _source((key, "a", 0.0), (5, "x", 0.0), (key, "b", 1.0))
    done = _merge(base, source, spec)
    assert _rows(done.snapshot)[key] == ("b", 1.0)


def test_deleting_a_row_twice_is_no_contradiction(base: Snapshot) -> None:
    spec = MergeSpec(on=("id",), matched=(DeleteRow(),))
    done = _merge(base, _source((3, "a", 0.0), (3, "b", 0.0)), spec)
    assert done.counts == RowCounts(inserted=0, updated=0, deleted=1)


def test_shared_keys_are_let_in_where_they_may(base: Snapshot) -> None:
    spec = MergeSpec(on=("id",), not_matched=(InsertAll(),), duplicates=Duplicates.INSERT_ALL)
    source = _source((30, "a", 0.0), (30, "b", 1.0))
    assert merge(base, source.to_reader(), spec).counts.inserted == 2


def test_a_match_that_must_not_be_refuses_the_merge(base: Snapshot) -> None:
    spec = MergeSpec(
        on=("id",), matched=(Fail(condition="source.id > 5"),), not_matched=(InsertAll(),)
    )
    with pytest.raises(InvalidRequestError, match="found matching row with key values: id = 9"):
        merge(base, SOURCE.to_reader(), spec)
    assert lance.dataset(base.location.uri).version == base.version


def test_a_source_on_disk_gives_the_same(base: Snapshot) -> None:
    source = _source(*((i, f"s{i}", float(i)) for i in range(5, 300)))
    done = _merge(base, source, UPSERT, memory_bytes=10)
    assert done.counts == RowCounts(inserted=290, updated=5, deleted=0)
    assert _rows(done.snapshot)[299] == ("s299", 299.0)


def test_one_task_after_the_other_gives_the_same(base: Snapshot) -> None:
    done = _merge(base, SOURCE, UPSERT, engine=LocalEngine(parallelism=1))
    assert done.counts == RowCounts(inserted=1, updated=2, deleted=0)


@pytest.mark.parametrize("memory_bytes", [1 << 30, 10], ids=["in memory", "on disk"])
def test_tasks_that_run_elsewhere_give_the_same(base: Snapshot, memory_bytes: int) -> None:
    spec = MergeSpec(
        on=("id",),
        matched=(UpdateSet(values=_set(weight="source.weight + target.weight")),),
        not_matched=(InsertAll(),),
        not_matched_by_source=(DeleteRow(condition="id < 2"),),
    )
    done = _merge(base, SOURCE, spec, engine=Elsewhere(), memory_bytes=memory_bytes)
    assert done.counts == RowCounts(inserted=1, updated=2, deleted=2)
    assert _rows(done.snapshot)[9] == ("n9", 14.5)


def test_the_keys_of_new_rows_are_always_recorded(base: Snapshot) -> None:
    made = _merge(base, SOURCE, UPSERT).snapshot.transaction
    assert made is not None
    assert isinstance(made.operation, Update)
    assert made.operation.inserted_rows is not None
    assert made.operation.inserted_rows.field_ids == (0,)


def test_columns_of_the_source_are_added_if_asked(base: Snapshot) -> None:
    spec = MergeSpec(
        on=("id",), matched=(UpdateAll(),), not_matched=(InsertAll(),), adds_columns=True
    )
    source = _source((3, 7), (20, 8), names=("id", "extra"))
    done = _merge(base, source, spec)
    rows = lance.dataset(done.snapshot.location.uri).to_table().to_pylist()
    assert {row["id"]: row["extra"] for row in rows if row["extra"]} == {3: 7, 20: 8}


def test_no_column_is_added_for_a_merge_that_is_refused(base: Snapshot) -> None:
    spec = MergeSpec(on=("id",), matched=(UpdateAll(),), adds_columns=True)
    source = _source((3, 7), (3, 8), names=("id", "extra"))
    with pytest.raises(InvalidRequestError, match="Ambiguous"):
        merge(base, source.to_reader(), spec)
    assert lance.dataset(base.location.uri).version == base.version


@pytest.mark.parametrize(
    ("source", "spec"),
    [
        (_source((1, 5), names=("id", "other")), UPSERT),
        (_source(("a", 1.0), names=("name", "weight")), UPSERT),
        (pa.table({"id": ["1"], "name": ["a"], "weight": [1.0]}), UPSERT),
        (pa.table({"id": [3], "name": [1], "weight": [1.0]}), UPSERT),
        (SOURCE, MergeSpec(on=("missing",), matched=(UpdateAll(),))),
        (SOURCE, MergeSpec(on=("id",), matched=(UpdateAll(condition="weight > 1"),))),
        (SOURCE, MergeSpec(on=("id",), matched=(UpdateAll(condition="source.id + 1"),))),
        (SOURCE, MergeSpec(on=("id",), matched=(UpdateAll(condition="source.missing = 1"),))),
        (SOURCE, MergeSpec(on=("id",), matched=(UpdateSet(values=_set(missing="1")),))),
        (SOURCE, MergeSpec(on=("id",), matched=(UpdateSet(values=_set(weight="source.name")),))),
        (SOURCE, MergeSpec(on=("id",), not_matched=(InsertAll(condition="target.id = 1"),))),
        (SOURCE, MergeSpec(on=("id",), not_matched_by_source=(DeleteRow(condition="nope"),))),
    ],
)
def test_a_merge_that_makes_no_sense_leaves_the_table_as_it_was(
    base: Snapshot, source: pa.Table, spec: MergeSpec
) -> None:
    with pytest.raises(LanceTableError):
        merge(base, source.to_reader(), spec)
    assert lance.dataset(base.location.uri).version == base.version


@pytest.mark.parametrize("spec", [{"on": ()}, {"on": ("id",)}])
def test_a_merge_without_a_key_or_without_clauses_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        MergeSpec(**spec)


KEYS = [
    pa.array([True, False]),
    pa.array([1, 2], pa.int8()),
    pa.array([1, 2], pa.uint64()),
    pa.array([1.5, 2.5], pa.float32()),
    pa.array([1.5, 2.5], pa.float64()),
    pa.array([1, 2], pa.float16()),
    pa.array(["1.50", "2.25"]).cast(pa.decimal128(10, 2)),
    pa.array(["1.50", "2.25"]).cast(pa.decimal256(40, 2)),
    pa.array([1, 2], pa.date32()),
    pa.array([86_400_000, 0], pa.date64()),
    pa.array([1, 2], pa.timestamp("us", "UTC")),
    pa.array([1, 2], pa.time32("s")),
    pa.array([1, 2], pa.duration("ns")),
    pa.array(["a", "b"]),
    pa.array(["a", "b"], pa.large_string()),
    pa.array([b"a", b"b"]),
    pa.array([b"ab", b"cd"], pa.binary(2)),
    pa.array(["a", "b"]).dictionary_encode(),
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: str(keys.type))
def test_keys_of_every_plain_type_are_matched(tmp_path: Path, keys: pa.Array) -> None:
    table = pa.table({"k": keys, "v": [1, 2]})
    base = lance.write_dataset(table.slice(0, 1), tmp_path / "t")._snapshot
    spec = MergeSpec(on=("k",), matched=(UpdateAll(),), not_matched=(InsertAll(),))
    source = table.set_column(1, "v", [[10, 20]])
    done = merge(base, source.to_reader(), spec)
    assert done.counts == RowCounts(inserted=1, updated=1, deleted=0)
    again = merge(done.snapshot, source.to_reader(), spec)
    assert again.counts == RowCounts(inserted=0, updated=2, deleted=0)
    found = lance.dataset(tmp_path / "t").to_table().sort_by("v")
    assert found["v"].to_pylist() == [10, 20]
    assert found["k"].to_pylist() == keys.to_pylist()
