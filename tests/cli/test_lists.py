"""Lists in the formats for programs: JSON, JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from tests.cli.conftest import Run

Document = Callable[..., Any]
LISTS = {
    "log": "versions",
    "files": "fragments",
    "profile": "columns",
    "index list": "indices",
    "tag list": "tags",
    "branch list": "branches",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with two versions, an index, a tag and a branch."""
    path = tmp_path_factory.mktemp("lists") / "t.lance"
    ds = lance.write_dataset(pa.table({"id": [1, 2, 3], "s": ["a", 'say "b", c', None]}), path)
    ds.create_scalar_index("id", "BTREE")
    ds.tags.create("first", 1)
    ds.create_branch("trial")
    return path


@pytest.mark.parametrize("command", LISTS)
def test_json_lines_are_the_items_of_json(
    table: Path, document: Document, output: Callable[..., str], command: str
) -> None:
    name = LISTS[command]
    items = document(*command.split(), table)[name]
    lines = output(*command.split(), table, "-o", "jsonl").splitlines()
    assert items and [json.loads(line) for line in lines] == items


@pytest.mark.parametrize("command", LISTS)
def test_csv_has_a_column_for_each_key(
    table: Path, document: Document, output: Callable[..., str], command: str
) -> None:
    name = LISTS[command]
    items = document(*command.split(), table)[name]
    rows = list(csv.DictReader(io.StringIO(output(*command.split(), table, "-o", "csv"))))
    assert [set(row) for row in rows] == [set(item) for item in items]
    for row, item in zip(rows, items, strict=True):
        for key, value in item.items():
            is_nested = isinstance(value, (bool, dict, list))
            assert row[key] == (
                "" if value is None else json.dumps(value) if is_nested else str(value)
            )


def test_tables_below_a_folder(table: Path, document: Document, output: Callable[..., str]) -> None:
    items = document("ls", table.parent)["tables"]
    assert [json.loads(output("ls", table.parent, "-o", "jsonl"))] == items
    (row,) = csv.DictReader(io.StringIO(output("ls", table.parent, "-o", "csv")))
    assert (row["uri"], row["rows"]) == (str(table), "3")


def test_an_empty_list_has_no_lines(tmp_path: Path, output: Callable[..., str]) -> None:
    lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    for form in ("jsonl", "csv"):
        assert output("tag", "list", tmp_path / "t.lance", "-o", form) == ""


def test_a_log_that_is_not_whole_says_so(table: Path, document: Document, run: Run) -> None:
    assert document("log", table, "-n", 1)["truncated"] is True
    assert document("log", table, "-n", 0)["truncated"] is False
    for form in ("jsonl", "csv"):
        result = run("log", table, "-n", "1", "-o", form)
        assert (result.exit_code, "1 older version" in result.stderr) == (0, True)
