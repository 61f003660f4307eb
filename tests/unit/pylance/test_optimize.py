"""Compaction in separate steps: plan, run and commit, as in pylance."""

from __future__ import annotations

import pickle
import shutil
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, RetryableConflictError, UnsupportedError
from lancelake.pylance.optimize import (
    Compaction,
    CompactionMetrics,
    CompactionPlan,
    CompactionTask,
    RewriteResult,
)


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    """Return six fragments of ten rows, with stable ids; one row is deleted."""
    uri = tmp_path / "t.lance"
    for number in range(6):
        ids = pa.array(range(number * 10, number * 10 + 10), pa.int64())
        mode = "append" if number else "create"
        lance.write_dataset(pa.table({"id": ids}), uri, mode=mode, enable_stable_row_ids=True)
    found = lance.dataset(uri)
    found.delete("id = 5")
    return found


@pytest.fixture
def plan(dataset: lance.LanceDataset) -> CompactionPlan:
    """Return a plan of two tasks."""
    return Compaction.plan(dataset, {"target_rows_per_fragment": 25})


def test_a_plan_names_the_version_and_its_tasks(plan: CompactionPlan) -> None:
    assert (plan.read_version, plan.num_tasks()) == (7, 2)
    assert [[f.id for f in task.fragments] for task in plan.tasks] == [[0, 1, 2], [3, 4, 5]]
    assert repr(plan) == "CompactionPlan(read_version=7, tasks=<2 compaction tasks>)"


def test_plans_tasks_and_results_travel(dataset: lance.LanceDataset, plan: CompactionPlan) -> None:
    assert CompactionPlan.from_json(plan.json()) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    task = plan.tasks[0]
    assert CompactionTask.from_json(task.json()) == task
    result = pickle.loads(pickle.dumps(task)).execute(dataset)
    assert RewriteResult.from_json(result.json()) == result
    assert pickle.loads(pickle.dumps(result)) == result


def test_nothing_is_visible_before_the_commit(
    dataset: lance.LanceDataset, plan: CompactionPlan
) -> None:
    result = plan.tasks[0].execute(dataset)
    assert result.metrics == CompactionMetrics(3, 1, 4, 1)
    assert [f.physical_rows for f in result.new_fragments] == [29]
    assert lance.dataset(dataset.uri).version == 7


def test_results_are_committed_together(dataset: lance.LanceDataset, plan: CompactionPlan) -> None:
    before = dataset.to_table(columns=["id", "_rowid"])
    results = [task.execute(dataset) for task in plan.tasks]
    assert Compaction.commit(dataset, results) == CompactionMetrics(6, 2, 7, 2)
    assert dataset.version == 9
    assert dataset.to_table(columns=["id", "_rowid"]) == before


def test_tasks_of_an_older_dataset_object_are_committed_at_their_version(
    dataset: lance.LanceDataset, plan: CompactionPlan
) -> None:
    other = lance.dataset(dataset.uri)
    other.delete("id = 45")
    results = [task.execute(other) for task in plan.tasks]
    assert Compaction.commit(other, results) == CompactionMetrics(3, 1, 4, 1)
    assert 45 not in other.to_table()["id"].to_pylist()


def test_a_commit_of_which_nothing_stands_is_a_conflict(
    dataset: lance.LanceDataset, plan: CompactionPlan
) -> None:
    results = [task.execute(dataset) for task in plan.tasks]
    lance.dataset(dataset.uri).delete("id IN (6, 45)")
    with pytest.raises(RetryableConflictError):
        Compaction.commit(dataset, results)


def test_nothing_committed_changes_nothing(dataset: lance.LanceDataset) -> None:
    assert Compaction.commit(dataset, []) == CompactionMetrics()
    assert dataset.version == 7


def test_compact_files_moves_the_dataset(dataset: lance.LanceDataset) -> None:
    assert dataset.optimize.compact_files() == CompactionMetrics(6, 1, 7, 1)
    assert (dataset.version, dataset.count_rows()) == (9, 59)


def test_config_gives_defaults_that_arguments_overrule(dataset: lance.LanceDataset) -> None:
    dataset.update_config({"lance.compaction.target_rows_per_fragment": "10"})
    assert Compaction.plan(dataset, {}).num_tasks() == 0
    assert Compaction.plan(dataset, {"target_rows_per_fragment": 60}).num_tasks() == 1


def test_rows_can_be_sorted_while_compacting(dataset: lance.LanceDataset) -> None:
    dataset.optimize.compact_files(sort_by=[lance.ColumnOrdering("id", ascending=False)])
    ids = dataset.to_table()["id"].to_pylist()
    assert ids == sorted(ids, reverse=True)


def test_sorting_travels_with_a_task(dataset: lance.LanceDataset) -> None:
    plan = Compaction.plan(dataset, {"sort_by": "id"})
    task = CompactionTask.from_json(plan.tasks[0].json())
    Compaction.commit(dataset, [task.execute(dataset)])
    assert dataset.to_table()["id"].to_pylist() == [i for i in range(60) if i != 5]


@pytest.mark.parametrize(
    "options",
    [{"bogus": 1}, {"compaction_mode": "fast"}, {"max_source_rows": 0}, {"sort_by": "nowhere"}],
)
def test_wrong_options_are_refused(dataset: lance.LanceDataset, options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        Compaction.plan(dataset, options)  # type: ignore[arg-type]  # wrong on purpose


def test_a_table_without_indices_has_them_up_to_date(dataset: lance.LanceDataset) -> None:
    dataset.optimize.optimize_indices()
    assert dataset.version == 7


def test_indices_of_unknown_kinds_are_left_alone_with_a_warning(
    dataset: lance.LanceDataset,
) -> None:
    unknown = lance.Index(
        str(uuid.uuid4()), "x", [0], dataset.version, {0}, 0, index_details=("/lance.table.X", b"")
    )
    operation = lance.LanceOperation.CreateIndex([unknown], [])
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)
    found = lance.dataset(dataset.uri)
    with pytest.warns(UserWarning, match="index 'x' is of an unknown kind"):
        found.optimize.optimize_indices()
    with pytest.raises(UnsupportedError, match="'x'"):
        found.optimize.optimize_indices(index_names=["x"])


def test_the_change_feed_sees_no_change(dataset: lance.LanceDataset) -> None:
    begin = dataset.version
    dataset.optimize.compact_files()
    changes = dataset.changes(begin, dataset.version)
    assert changes.read_all().num_rows == 0


def test_the_change_feed_is_the_same_with_and_without_a_compaction(
    dataset: lance.LanceDataset, tmp_path: Path
) -> None:
    copy = shutil.copytree(dataset.uri, tmp_path / "copy.lance")
    feeds = []
    for uri, compacts in ((dataset.uri, True), (copy, False)):
        found = lance.dataset(uri)
        found.update({"id": "id + 100"}, where="id < 3")
        if compacts:
            found.optimize.compact_files()
        found.delete("id = 40")
        changes = found.changes(1).read_all()
        feeds.append(changes.select(["id", "_rowid", "_change_type"]).to_pylist())
    assert feeds[0] == feeds[1]


def test_a_result_shows_what_it_replaces(tmp_path: Path) -> None:
    made = lance.write_dataset(pa.table({"a": range(4)}), tmp_path / "t", max_rows_per_file=2)
    (task,) = Compaction.plan(made, {}).tasks
    result = task.execute(made)
    assert repr(result) == (
        f"RewriteResult(read_version=1, new_fragments={result.new_fragments}, "
        f"old_fragments={result.original_fragments})"
    )


def test_a_file_above_the_limit_is_split(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 60, 2_500_000)
    made = lance.write_dataset(pa.table({"a": values}), tmp_path / "t", max_rows_per_file=1 << 30)
    assert made.optimize.compact_files().fragments_removed == 0
    done = made.optimize.compact_files(max_bytes_per_file=8 << 20)
    assert (done.fragments_removed, done.fragments_added) == (1, 3)
    assert made.to_table()["a"].to_numpy().tolist() == values.tolist()
    assert made.optimize.compact_files(max_bytes_per_file=8 << 20).fragments_removed == 0
