"""Indices are built, shown, refreshed and dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import lancelake.pylance as lance
from tests.support.scalar_index_tables import rows

Document = Callable[..., Any]
Run = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a table of three fragments."""
    lance.write_dataset(rows(300), tmp_path / "t.lance", max_rows_per_file=100)
    return tmp_path / "t.lance"


def test_create_builds_an_index_of_all_rows(document: Document, place: Path) -> None:
    body = document("index", "create", place, "i")
    (index,) = body["indices"]
    assert (index["name"], index["kind"], index["rows"]) == ("i_idx", "BTree", 300)
    assert body["version"] == 2


def test_create_takes_a_kind_a_name_and_parameters(document: Document, place: Path) -> None:
    args = ("--kind", "zonemap", "--name", "z", "-p", "rows_per_zone=50")
    document("index", "create", place, "i", *args)
    body = document("index", "stats", place, "z")
    assert body["segment_statistics"] == [{"num_zones": 6, "rows_per_zone": 50}]


def test_create_of_a_taken_name_exits_with_4(run: Run, place: Path) -> None:
    assert run("index", "create", place, "i").exit_code == 0
    assert run("index", "create", place, "i").exit_code == 4
    assert run("index", "create", place, "i", "--replace").exit_code == 0


@pytest.mark.parametrize("args", [("zz",), ("i", "-k", "BTRE"), ("i", "-p", "x")])
def test_create_of_what_cannot_be_exits_with_2(run: Run, place: Path, args: tuple[str]) -> None:
    assert run("index", "create", place, *args).exit_code == 2


def test_list_shows_how_much_is_covered(output: Callable[..., str], place: Path) -> None:
    output("index", "create", place, "i")
    lance.write_dataset(rows(100), place, mode="append")
    lines = output("index", "list", place).splitlines()
    assert lines[1].split()[:6] == ["i_idx", "BTree", "i", "300", "of", "400"]
    assert lines[-1] == "1 index"


def test_refresh_adds_rows(document: Document, place: Path) -> None:
    document("index", "create", place, "i")
    lance.write_dataset(rows(100), place, mode="append")
    (index,) = document("index", "refresh", place)["indices"]
    assert (index["rows"], index["segments"]) == (400, 1)


def test_refresh_with_nothing_to_do_makes_no_version(document: Document, place: Path) -> None:
    document("index", "create", place, "i")
    body = document("index", "refresh", place, "i_idx")
    assert (body["version"], body["indices"]) == (2, [])


def test_refresh_can_add_a_segment(document: Document, place: Path) -> None:
    document("index", "create", place, "i", "--empty")
    (index,) = document("index", "refresh", place, "--merge", "0")["indices"]
    assert index["rows"] == 300


def test_stats_are_shown_to_people(output: Callable[..., str], place: Path) -> None:
    output("index", "create", place, "k", "-k", "bitmap")
    assert "300 rows  num_bitmaps 4" in output("index", "stats", place, "k_idx")


def test_drop_forgets_the_index(document: Document, run: Run, place: Path) -> None:
    document("index", "create", place, "i")
    assert document("index", "drop", place, "i_idx")["dropped"] == "i_idx"
    assert document("index", "list", place)["indices"] == []
    assert run("index", "drop", place, "i_idx").exit_code == 3


def test_check_warns_about_rows_that_are_not_indexed(
    output: Callable[..., str], place: Path
) -> None:
    output("index", "create", place, "i")
    lance.write_dataset(rows(100), place, mode="append")
    assert "index 'i_idx' covers 300 of 400 rows" in output("check", place)


def test_a_damaged_index_is_found_and_built_again(
    document: Document, run: Run, place: Path
) -> None:
    document("index", "create", place, "k", "-k", "bitmap")
    (path,) = place.glob("_indices/*/bitmap_page_lookup.lance")
    data = path.read_bytes()
    path.write_bytes(b"\0" * (len(data) // 2) + data[len(data) // 2 :])
    result = run("check", place, "--data")
    assert result.exit_code == 6
    assert "index 'k_idx'" in result.stdout
    assert "bitmap_page_lookup.lance" in result.stdout
    run("repair", place, "--data", "--apply", "--rebuild-indices")
    (index,) = document("index", "list", place)["indices"]
    assert index["rows"] == 300
    assert run("check", place, "--data").exit_code == 0


def test_a_missing_index_file_is_dropped_by_repair(
    document: Document, run: Run, place: Path
) -> None:
    document("index", "create", place, "k", "-k", "bitmap")
    (path,) = place.glob("_indices/*/bitmap_page_lookup.lance")
    path.unlink()
    assert run("check", place).exit_code == 6
    assert run("repair", place, "--apply").exit_code == 0
    assert document("index", "list", place)["indices"] == []
