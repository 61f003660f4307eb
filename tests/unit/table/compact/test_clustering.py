"""Compaction orders the rows that it rewrites by the clustering columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError
from lancelake.table.compact.clustering import CLUSTER_BY, clustered, ensure_not_clustering
from lancelake.table.compact.options import CompactionSettings
from lancelake.table.optimize import optimize


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
