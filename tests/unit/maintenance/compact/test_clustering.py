"""Compaction orders the rows that it rewrites by the clustering columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.maintenance.compact.options import CompactionMode, CompactionSettings
from lancelake.maintenance.compact.plan import (
    CLUSTER_BY,
    cluster_paths,
    cluster_text,
    clustered,
    ensure_not_clustering,
    table_settings,
)
from lancelake.maintenance.optimize import optimize
from lancelake.pylance.optimize import Compaction


def rows(start: int, count: int) -> pa.Table:
    """Return rows in descending order."""
    return pa.table({"a": range(start + count, start, -1), "b": range(count)})


def test_only_fragments_that_are_rewritten_are_ordered(tmp_path: Path) -> None:
    place = tmp_path / "t"
    lance.write_dataset(rows(0, 100), place)
    for start in range(5):
        lance.write_dataset(rows(start, 10), place, mode="append")
    dataset = lance.dataset(place)
    dataset.update_config({CLUSTER_BY: "a"})
    settings = CompactionSettings(target_rows_per_fragment=100)
    chosen = clustered(dataset._snapshot, settings)
    assert chosen.excluded_fragment_ids == {0}
    assert [key.column for key in chosen.sort_by] == ["a"]


def test_optimize_orders_rows(tmp_path: Path) -> None:
    place = tmp_path / "t"
    for start in range(6):
        lance.write_dataset(rows(start, 10), place, mode="append")
    dataset = lance.dataset(place)
    dataset.update_config({CLUSTER_BY: "a"})
    optimize(dataset._snapshot)
    found = lance.dataset(place).to_table()["a"].to_pylist()
    assert found == sorted(found)


def test_without_clustering_columns_rows_keep_their_order(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 10), tmp_path / "t")
    settings = CompactionSettings()
    assert clustered(dataset._snapshot, settings) is settings


def test_a_clustering_column_is_neither_dropped_nor_renamed(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 10), tmp_path / "t")
    dataset.update_config({CLUSTER_BY: "a, s.x"})
    for path in ("a", "s", "s.x"):
        with pytest.raises(InvalidRequestError, match="clustering column"):
            ensure_not_clustering(dataset._snapshot, [path])
    ensure_not_clustering(dataset._snapshot, ["b"])


def test_a_quoted_path_names_the_same_clustering_column(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 10), tmp_path / "t")
    dataset.update_config({CLUSTER_BY: "a"})
    with pytest.raises(InvalidRequestError, match="clustering column"):
        ensure_not_clustering(dataset._snapshot, ["`a`"])


def test_names_with_commas_can_be_clustering_columns() -> None:
    text = cluster_text([["a,b"], ["s", "c.d"]])
    assert text is not None
    assert cluster_paths({CLUSTER_BY: text}) == [["a,b"], ["s", "c.d"]]


def test_given_settings_replace_those_of_the_config(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 10), tmp_path / "t")
    prefix = "lance.compaction."
    dataset.update_config({f"{prefix}target_rows_per_fragment": "7", f"{prefix}batch_size": "3"})
    chosen = table_settings(dataset._snapshot, target_rows_per_fragment=9, batch_size=None)
    assert (chosen.target_rows_per_fragment, chosen.batch_size) == (9, 3)


def test_the_python_face_orders_rows(tmp_path: Path) -> None:
    for start in range(6):
        lance.write_dataset(rows(start, 10), tmp_path / "t", mode="append")
    dataset = lance.dataset(tmp_path / "t")
    dataset.update_config({CLUSTER_BY: "a"})
    dataset.optimize.compact_files()
    found = dataset.to_table()["a"].to_pylist()
    assert found == sorted(found)


def test_tasks_of_a_plan_order_rows(tmp_path: Path) -> None:
    for start in range(6):
        lance.write_dataset(rows(start, 10), tmp_path / "t", mode="append")
    dataset = lance.dataset(tmp_path / "t")
    dataset.update_config({CLUSTER_BY: "a"})
    planned = Compaction.plan(dataset, {})
    Compaction.commit(dataset, [task.execute(dataset) for task in planned.tasks])
    found = dataset.to_table()["a"].to_pylist()
    assert found == sorted(found)


def test_copied_pages_keep_the_order_of_rows(tmp_path: Path) -> None:
    dataset = lance.write_dataset(rows(0, 10), tmp_path / "t")
    dataset.update_config({CLUSTER_BY: "a"})
    settings = CompactionSettings(compaction_mode=CompactionMode.FORCE_BINARY_COPY)
    assert clustered(dataset._snapshot, settings) is settings
