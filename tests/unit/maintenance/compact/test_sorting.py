"""Sorted compaction keeps values, ids, versions and blobs, in one range or several."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.maintenance.check.run import check
from lancelake.maintenance.compact import plan as planning
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import RewritePlan, plan
from lancelake.maintenance.compact.run import compact, land, rewritten
from lancelake.pylance.blob import blob_array, blob_field
from lancelake.scan.request import Ordering
from lancelake.table.publish import DEFAULT_CHOICES

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
BY_NAME = CompactionSettings(target_rows_per_fragment=15, sort_by=(Ordering(column="name"),))


@pytest.fixture
def in_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small tables be cut into ranges too."""
    monkeypatch.setattr(planning, "_RANGE_BYTES", 1)


def run(base: Snapshot, planned: RewritePlan) -> Snapshot:
    """Run the tasks as another process would, and commit."""
    done = [
        rewritten(group, [pickle.loads(pickle.dumps(task)).run() for task in group.tasks])
        for group in planned.groups
    ]
    return land(base, done, DEFAULT_CHOICES).snapshot


def rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    found = lance.dataset(snapshot.location.uri, version=snapshot.version)
    lineage = LINEAGE if found.has_stable_row_ids else []
    table: list[dict[str, Any]] = found.to_table(
        columns=[*found.schema.names, *lineage]
    ).to_pylist()
    return table


def by_id(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.usefixtures("in_ranges")
def test_ranges_written_apart_are_one_order(base: Snapshot) -> None:
    planned = plan(base, BY_NAME, parallelism=8)
    assert [len(group.tasks) for group in planned.groups] == [2]
    made = run(base, planned)
    assert by_id(rows(made)) == by_id(rows(base))
    names = [row["name"] for row in rows(made)]
    assert names == sorted(names)
    assert list(check(base.location, data=True)) == []


@pytest.mark.usefixtures("in_ranges")
def test_no_more_ranges_than_files_or_tasks_at_once(base: Snapshot) -> None:
    assert len(plan(base, replace(BY_NAME, target_rows_per_fragment=5), parallelism=3).tasks) == 3
    assert len(plan(base, replace(BY_NAME, target_rows_per_fragment=100), parallelism=9).tasks) == 1


@pytest.mark.usefixtures("in_ranges")
def test_files_of_ranges_are_full(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(shuffled(1000), pa.int64())})
    ds = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=10)
    options = CompactionSettings(target_rows_per_fragment=50, sort_by=(Ordering(column="id"),))
    made = run(ds._snapshot, plan(ds._snapshot, options, parallelism=7))
    assert all((f.physical_rows or 0) >= 50 for f in made.manifest.fragments)
    assert len(made.manifest.fragments) > 7


def test_small_tables_are_one_range(base: Snapshot) -> None:
    assert len(plan(base, BY_NAME, parallelism=8).tasks) == 1


@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize("parallelism", [1, 3])
def test_rows_follow_a_curve(parallelism: int, base: Snapshot) -> None:
    options = CompactionSettings(target_rows_per_fragment=15, z_order_by=("id", "name"))
    made = run(base, plan(base, options, parallelism=parallelism))
    assert by_id(rows(made)) == by_id(rows(base))
    assert 2 <= len(made.manifest.fragments) <= 3
    spread = [max(i) - min(i) for i in _ids_by_fragment(made)]
    assert max(spread) < 40


def _ids_by_fragment(made: Snapshot) -> list[list[int]]:
    found = lance.dataset(made.location.uri)
    return [fragment.to_table()["id"].to_pylist() for fragment in found.get_fragments()]


def test_rows_with_the_same_keys_keep_their_order(tmp_path: Path) -> None:
    ids = pa.array(range(200), pa.int64())
    table = pa.table({"id": ids, "k": pa.array([i % 3 for i in range(200)], pa.int64())})
    ds = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=20)
    ds.optimize.compact_files(sort_by="k")
    assert ds.to_table()["id"].to_pylist() == sorted(range(200), key=lambda i: i % 3)


def test_directions_and_nulls_are_as_asked(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 1, None, 2], "b": ["x", None, "y", "z"]})
    ds = lance.write_dataset(table, tmp_path / "t.lance")
    keys = [
        lance.ColumnOrdering("a", ascending=False, nulls_first=True),
        lance.ColumnOrdering("b", nulls_first=False),
    ]
    ds.optimize.compact_files(sort_by=keys)
    found = [(row["a"], row["b"]) for row in ds.to_table().to_pylist()]
    assert found == [(None, "y"), (2, "z"), (1, "x"), (1, None)]


def shuffled(count: int) -> list[int]:
    numbers = list(range(count))
    random.Random(5).shuffle(numbers)
    return numbers


KEYS: dict[str, tuple[Callable[[int], object], pa.DataType]] = {
    "text": (lambda i: f"{i:05}", pa.string()),
    "binary": (lambda i: b"%05d" % i, pa.binary()),
    "fixed binary": (lambda i: b"%05d" % i, pa.binary(5)),
    "half": (np.float16, pa.float16()),
    "double": (lambda i: i / 3, pa.float64()),
    "day": (lambda i: i, pa.date32()),
    "time": (lambda i: i, pa.timestamp("us", "UTC")),
    "decimal": (lambda i: i, pa.decimal128(9, 2)),
    "small": (lambda i: i % 100, pa.int8()),
    "truth": (lambda i: i > 50, pa.bool_()),
    "words": (lambda i: f"{i:05}", pa.dictionary(pa.int16(), pa.string())),
}


@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize("order", ["sort_by", "z_order_by"])
@pytest.mark.parametrize("name", sorted(KEYS))
def test_keys_may_be_of_any_simple_type(name: str, order: str, tmp_path: Path) -> None:
    value, kind = KEYS[name]
    numbers = shuffled(100)
    keys = pa.array([value(i) for i in numbers], kind)
    table = pa.table({"id": pa.array(numbers, pa.int64()), "key": keys})
    ds = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=13)
    ds.optimize.compact_files(target_rows_per_fragment=30, **{order: ["key"]})  # type: ignore[arg-type]  # by name
    found = ds.to_table()
    assert found.sort_by("id") == table.sort_by("id")
    values = found["key"].to_pylist()
    assert values == sorted(values)


@pytest.mark.usefixtures("in_ranges")
def test_keys_may_be_inside_structs(tmp_path: Path) -> None:
    numbers = shuffled(50)
    at = pa.array([{"x": i, "far": {"y": -i}} for i in numbers])
    table = pa.table({"id": pa.array(numbers, pa.int64()), "at": at})
    ds = lance.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=7)
    ds.optimize.compact_files(target_rows_per_fragment=20, sort_by=["at.far.y"])
    assert ds.to_table()["id"].to_pylist() == list(range(49, -1, -1))


@pytest.mark.parametrize("column", ["tags", "at", "v", "nowhere", "at.nothing", "doc"])
def test_other_keys_are_refused(column: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "tags": [["a"]],
            "at": [{"x": 1}],
            "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
            "doc": pa.array(['{"a": 1}'], pa.json_()),
        }
    )
    ds = lance.write_dataset(table, tmp_path / "t.lance")
    for order in ("sort_by", "z_order_by"):
        with pytest.raises(InvalidRequestError):
            ds.optimize.compact_files(**{order: [column]})  # type: ignore[arg-type]  # by name


def test_two_orders_are_refused() -> None:
    with pytest.raises(InvalidRequestError):
        CompactionSettings(sort_by=(Ordering(column="a"),), z_order_by=("b",))


def wide_table(numbers: list[int]) -> pa.Table:
    """Return rows of every shape that is hard to move."""
    values = np.array(numbers, dtype=np.float32).repeat(8)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(values), 8),
            "tags": [[f"t{i}", None] if i % 3 else None for i in numbers],
            "at": [{"x": i, "deep": [{"y": i}]} if i % 4 else None for i in numbers],
            "word": pa.array([f"w{i % 5}" for i in numbers]).dictionary_encode(),
            "doc": pa.array([f'{{"n": {i}}}' for i in numbers], pa.json_()),
            "long": pa.array([str(i) * 50 for i in numbers], pa.large_string()),
        }
    )


@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_values_of_every_shape_move_with_their_rows(stable: bool, tmp_path: Path) -> None:
    table = wide_table(shuffled(120))
    ds = lance.write_dataset(
        table, tmp_path / "t.lance", max_rows_per_file=17, enable_stable_row_ids=stable
    )
    ds.delete("id % 9 = 4")
    before = by_id(ds.to_table().to_pylist())
    ds.optimize.compact_files(target_rows_per_fragment=40, sort_by="id")
    after = ds.to_table().to_pylist()
    assert after == before
    assert list(check(ds._snapshot.location, data=True)) == []


@pytest.mark.usefixtures("in_ranges")
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_old_blobs_move_with_their_rows(version: str, tmp_path: Path) -> None:
    numbers = shuffled(60)
    blobs = [None if i % 7 == 0 else b"" if i % 7 == 1 else b"%d" % i * 40 for i in numbers]
    field = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    table = pa.table({"id": numbers, "blob": blobs}, schema=schema)
    ds = lance.write_dataset(
        table, tmp_path / "t.lance", max_rows_per_file=11, data_storage_version=version
    )
    ds.optimize.compact_files(target_rows_per_fragment=20, sort_by="id")
    found = ds.scanner(blob_handling="all_binary").to_table().to_pylist()
    expected = sorted(zip(numbers, blobs, strict=True), key=lambda pair: pair[0])
    assert [(row["id"], row["blob"]) for row in found] == expected


@pytest.mark.usefixtures("in_ranges")
def test_new_blobs_move_with_their_rows(tmp_path: Path) -> None:
    numbers = shuffled(40)
    values = [None if i % 7 == 0 else b"%d" % i * (1 + 3000 * (i % 5)) for i in numbers]
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("blob")])
    table = pa.table([pa.array(numbers, pa.int64()), blob_array(values)], schema=schema)
    ds = lance.write_dataset(
        table, tmp_path / "t.lance", max_rows_per_file=11, data_storage_version="2.2"
    )
    ds.optimize.compact_files(target_rows_per_fragment=20, sort_by="id")
    assert ds.to_table(columns=["id"])["id"].to_pylist() == list(range(40))
    by_number = dict(zip(numbers, values, strict=True))
    for blob, number in zip(ds.take_blobs("blob", indices=range(40)), range(40), strict=True):
        found = None if blob is None else blob.readall()
        assert found == by_number[number]


def test_every_fragment_is_taken_whatever_is_between(base: Snapshot) -> None:
    excluded = frozenset({base.manifest.fragments[2].id})
    options = replace(BY_NAME, excluded_fragment_ids=excluded)
    (group,) = plan(base, options).groups
    assert [f.id for f in group.fragments] == [0, 1, 3, 4, 5]


def test_limits_leave_later_fragments_out(base: Snapshot) -> None:
    (group,) = plan(base, replace(BY_NAME, max_source_fragments=2)).groups
    assert [f.id for f in group.fragments] == [0, 1]


def test_a_table_without_live_rows_is_emptied(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    ds.delete("a = 1")
    done = compact(ds._snapshot, CompactionSettings(z_order_by=("a",)))
    assert done.snapshot.manifest.fragments[0].physical_rows == 1


def test_a_table_without_rows_stays(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.lance")
    done = compact(ds._snapshot, CompactionSettings(z_order_by=("a",)))
    assert done.metrics.fragments_removed == 0


def test_an_error_while_reading_is_reported_as_such(base: Snapshot) -> None:
    (path,) = {f.files[0].path for f in base.manifest.fragments[2:3]}
    Path(base.location.uri, "data", path).write_bytes(b"damaged")
    with pytest.raises(LanceTableError, match=path):
        compact(base, BY_NAME)
