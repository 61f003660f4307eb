"""`lancelake profile` and `lancelake stats`."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance

Document = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = pa.table(
        {
            "id": range(100),
            "s": ["a", "bb", None, "dddd"] * 25,
            "f": [float("nan"), 1.5, -2.0, None] * 25,
            "v": pa.array([[0.0, 1.0]] * 100, pa.list_(pa.float32(), 2)),
        }
    )
    lance.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=30).delete("id < 10")
    return tmp_path / "t.lance"


def test_facts_of_columns(table: Path, document: Document) -> None:
    body = document("profile", table)
    assert body["rows"] == 90
    found = {column["name"]: column for column in body["columns"]}
    assert (found["id"]["minimum"], found["id"]["maximum"], found["id"]["nulls"]) == (10, 99, 0)
    assert abs(found["id"]["distinct_estimate"] - 90) <= 3
    assert sum(found["id"]["histogram"]) == 90
    assert (found["s"]["minimum"], found["s"]["maximum"]) == ("a", "dddd")
    assert (found["s"]["distinct_estimate"], found["s"]["nulls"]) == (3, 23)
    assert (found["f"]["minimum"], found["f"]["maximum"]) == (-2.0, 1.5)
    assert found["v"]["minimum"] is None
    assert found["v"]["distinct_estimate"] is None


def test_a_filter_limits_the_rows(table: Path, document: Document) -> None:
    body = document("profile", table, "-f", "id >= 50", "-c", "id")
    assert (body["rows"], len(body["columns"]), body["columns"][0]["minimum"]) == (50, 1, 50)


def test_the_table_for_people_has_a_line_for_each_column(
    table: Path, output: Callable[..., str]
) -> None:
    lines = output("profile", table).splitlines()
    assert [line.split()[0] for line in lines] == ["column", "id", "s", "f", "v", "90"]


def test_a_table_without_rows(tmp_path: Path, document: Document) -> None:
    empty = pa.table({"x": pa.array([], pa.int64())})
    lance.write_dataset(empty, tmp_path / "t.lance")
    (column,) = document("profile", tmp_path / "t.lance")["columns"]
    assert (column["nulls"], column["distinct_estimate"], column["minimum"]) == (0, 0, None)


def test_sizes_and_growth(table: Path, document: Document, tmp_path: Path) -> None:
    body = document("stats", table, "--svg", tmp_path / "stats.svg")
    assert body["fragment_sizes"] == [
        {"below": 100, "fragments": 4, "rows": 90, "deleted_rows": 10},
    ]
    assert [(point["version"], point["rows"]) for point in body["growth"]] == [(1, 100), (2, 90)]
    picture = (tmp_path / "stats.svg").read_text()
    assert "version 2: 90 rows" in picture
    assert "4 fragments, 10 deleted rows" in picture


def test_sizes_and_growth_as_a_png_file(table: Path, document: Document, tmp_path: Path) -> None:
    document("stats", table, "--png", tmp_path / "stats.png")
    content = (tmp_path / "stats.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    size = int.from_bytes(content[content.index(b"IDAT") - 4 : content.index(b"IDAT")])
    start = content.index(b"IDAT") + 4
    pixels = zlib.decompress(content[start : start + size])
    assert len(pixels) == 1280 * (1 + 3 * 1440)
    for bar in ("0a7ea4", "c0392b"):  # rows, and deleted rows
        assert bytes.fromhex(bar) * 100 in pixels


def test_a_plot_in_the_terminal(table: Path, output: Callable[..., str]) -> None:
    plain, plotted = (output("stats", table, *args) for args in ((), ("--plot",)))
    assert "█" not in plain
    bars = [line.count("█") for line in plotted.splitlines()]
    # Four fragments of one size with a tenth of their rows deleted; versions of 100 and 90 rows.
    assert bars == [0, 30 + 3, 0, 0, 30, 27]


def test_only_the_newest_versions_are_shown(table: Path, document: Document) -> None:
    for count, versions in (("1", [2]), ("0", [1, 2])):
        body = document("stats", table, "-n", count)
        assert [point["version"] for point in body["growth"]] == versions
        assert body["truncated"] is (len(versions) == 1)


def test_a_version_that_cannot_be_read_is_mentioned(
    tmp_path: Path, output: Callable[..., str], document: Document
) -> None:
    path = tmp_path / "t.lance"
    for number in range(3):
        lance.write_dataset(pa.table({"id": [number]}), path, mode="append")
    _, second, _ = sorted(path.glob("_versions/*.manifest"), reverse=True)
    second.write_bytes(b"no manifest")
    body = document("stats", path)
    assert [point["version"] for point in body["growth"]] == [1, 3]
    assert body["damaged_versions"] == [2]
    assert "version 2 cannot be read" in output("stats", path)


def test_older_versions_are_mentioned(table: Path, output: Callable[..., str]) -> None:
    assert "… 1 older version: --versions 0 shows all" in output("stats", table, "-n", "1")
    assert "older" not in output("stats", table)
