"""`lancelake compact`: dry run and compaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import Result

import lancelake.pylance as lance

Document = Callable[..., Any]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Return a table of six fragments with ten rows each."""
    uri = tmp_path / "small.lance"
    rows = pa.table({"id": pa.array(range(60), pa.int64())})
    lance.write_dataset(rows, uri, max_rows_per_file=10)
    return uri


def test_a_dry_run_changes_nothing(document: Document, small: Path) -> None:
    body = document("compact", small, "--dry-run", "--target-rows", 30)
    assert (body["version"], body["groups"]) == (1, [[0, 1, 2], [3, 4, 5]])
    assert body["fragments"] == 6
    assert document("info", small)["version"] == 1


def test_rows_come_into_fewer_fragments(document: Document, small: Path) -> None:
    body = document("compact", small, "--target-rows", 30)
    assert (body["version"], body["fragments_removed"], body["fragments_added"]) == (3, 6, 2)
    assert document("count", small)["rows"] == 60


def test_the_message_is_in_the_log(document: Document, small: Path) -> None:
    document("compact", small, "--message", "tidy")
    assert document("log", small)["versions"][0]["message"] == "tidy"


def test_nothing_to_do_makes_no_version(document: Document, small: Path) -> None:
    body = document("compact", small, "--target-rows", 10)
    assert (body["version"], body["fragments_removed"]) == (1, 0)


def test_rows_can_be_sorted(document: Document, small: Path) -> None:
    lance.dataset(small).update({"id": "100 - id"})
    document("compact", small, "--sort-by", "id")
    ids = lance.dataset(small).to_table()["id"].to_pylist()
    assert ids == sorted(ids)


def test_a_minus_sorts_the_other_way(document: Document, small: Path) -> None:
    lance.dataset(small).add_columns({"half": "id / 2"})
    document("compact", small, "--sort-by", "-half,id")
    found = lance.dataset(small).to_table().to_pylist()
    assert found == sorted(found, key=lambda row: (-row["half"], row["id"]))


def test_rows_can_follow_a_curve(document: Document, small: Path) -> None:
    lance.dataset(small).add_columns({"other": "id % 7"})
    body = document("compact", small, "--z-order-by", "id,other", "--target-rows", 20)
    assert body["fragments_removed"] == 6
    assert document("count", small)["rows"] == 60


def test_two_orders_exit_with_2(run: Callable[..., Result], small: Path) -> None:
    assert run("compact", small, "--sort-by", "id", "--z-order-by", "id").exit_code == 2


def test_groups_can_be_committed_one_by_one(document: Document, small: Path) -> None:
    body = document("compact", small, "--target-rows", 20, "--groups-per-commit", 1)
    assert body["version"] == 7


def test_output_shows_before_and_after(run: Callable[..., Result], small: Path) -> None:
    shown = run("compact", small).stdout
    assert "6 fragments" in shown
    assert "1 fragment," in shown


def test_a_column_that_does_not_exist_exits_with_2(run: Callable[..., Result], small: Path) -> None:
    assert run("compact", small, "--sort-by", "nowhere").exit_code == 2
