"""Commit of a compaction with concurrent changes."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.commit.snapshot import Snapshot
from lancelake.errors import IncompatibleConflictError
from lancelake.maintenance.check.run import check
from lancelake.maintenance.compact.options import CompactionSettings
from lancelake.maintenance.compact.plan import plan
from lancelake.maintenance.compact.run import Landing, Rewritten, land, rewritten
from lancelake.table.publish import DEFAULT_CHOICES

THIRDS = CompactionSettings(target_rows_per_fragment=20)
Change = Callable[[lance.LanceDataset], object]

NEW = pa.table({"id": pa.array([100], pa.int64()), "name": ["new"]})


def append(ds: lance.LanceDataset) -> object:
    return ds.insert(NEW)


def merge_insert(ds: lance.LanceDataset) -> object:
    rows = pa.table({"id": pa.array([41, 100], pa.int64()), "name": ["x", "y"]})
    return (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    )


# What others do, and how many of the two groups stand after it.
CHANGES: dict[str, tuple[Change, int]] = {
    "append": (append, 2),
    "delete a row": (lambda ds: ds.delete("id = 45"), 1),
    "delete a fragment": (lambda ds: ds.delete("id >= 30 AND id < 40"), 1),
    "delete nothing": (lambda ds: ds.delete("id = 1000"), 2),
    "update a row": (lambda ds: ds.update({"name": "'x'"}, where="id = 5"), 1),
    "update rows of both": (lambda ds: ds.update({"name": "'x'"}, where="id IN (5, 45)"), 0),
    "merge": (merge_insert, 1),
    "add a column": (lambda ds: ds.add_columns({"double": "id * 2"}), 0),
    "add an empty column": (lambda ds: ds.add_columns(pa.field("empty", pa.int32())), 2),
    "drop a column": (lambda ds: ds.drop_columns(["name"]), 2),
    "rename a column": (lambda ds: ds.alter_columns({"path": "name", "name": "called"}), 2),
    "change a type": (lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}), 0),
    "compact": (lambda ds: ds.optimize.compact_files(), 0),
    "compact a part": (lambda ds: ds.optimize.compact_files(excluded_fragment_ids=[3, 4, 5]), 1),
    "config": (lambda ds: ds.update_config({"a": "b"}), 2),
}


@pytest.fixture
def done(base: Snapshot) -> list[Rewritten]:
    """Return the rewrites of two groups: fragments 0 to 2, and 3 to 5."""
    groups = plan(base, THIRDS).groups
    return [rewritten(group, [task.run() for task in group.tasks]) for group in groups]


def rows(snapshot: Snapshot) -> pa.Table:
    dataset = lance.dataset(snapshot.location.uri, version=snapshot.version)
    lineage = ["_rowid"] if snapshot.manifest.has_stable_row_ids else []
    return dataset.to_table(columns=[*dataset.schema.names, *lineage]).sort_by("id")


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_rows_are_as_the_other_writer_left_them(
    name: str, base: Snapshot, done: list[Rewritten]
) -> None:
    change, standing = CHANGES[name]
    other = lance.dataset(base.location.uri)
    change(other)
    landing = land(base, done, DEFAULT_CHOICES)
    assert (len(landing.landed), len(landing.void)) == (standing, 2 - standing)
    assert rows(lance.dataset(base.location.uri)._snapshot) == rows(other._snapshot)
    assert list(check(base.location, data=True)) == []


def test_deleted_rows_do_not_return(base: Snapshot, done: list[Rewritten]) -> None:
    lance.dataset(base.location.uri).delete("id IN (7, 8, 51)")
    land(base, done, DEFAULT_CHOICES)
    ids = lance.dataset(base.location.uri).to_table()["id"].to_pylist()
    assert not {3, 4, 25, 7, 8, 51} & set(ids)
    assert len(ids) == 54


@pytest.mark.parametrize("change", ["overwrite", "restore"])
def test_a_table_that_was_replaced_stays_so(
    change: str, base: Snapshot, done: list[Rewritten]
) -> None:
    other = lance.dataset(base.location.uri, version=2)
    if change == "overwrite":
        other = lance.write_dataset(NEW, base.location.uri, mode="overwrite")
    else:
        other.restore()
    with pytest.raises(IncompatibleConflictError):
        land(base, done, DEFAULT_CHOICES)
    assert rows(lance.dataset(base.location.uri)._snapshot) == rows(other._snapshot)


def test_a_conflict_is_reported_when_nothing_stands(base: Snapshot, done: list[Rewritten]) -> None:
    lance.dataset(base.location.uri).update({"name": "'x'"})
    landing = land(base, done, DEFAULT_CHOICES)
    assert landing.landed == ()
    assert landing.conflict is not None


def test_nothing_done_makes_no_version(base: Snapshot) -> None:
    assert land(base, [], DEFAULT_CHOICES) == Landing(snapshot=base, landed=())


def test_what_is_void_is_rewritten_again(base: Snapshot, dataset: lance.LanceDataset) -> None:
    tasks = plan(base, THIRDS).tasks
    assert len(tasks) == 2
    lance.dataset(base.location.uri).delete("id = 45")
    metrics = dataset.optimize.compact_files(target_rows_per_fragment=20)
    assert metrics.fragments_removed == 6
    assert sorted(f.count_rows() for f in dataset.get_fragments()) == [27, 29]
