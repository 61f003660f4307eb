"""`lancelake columns`: add, drop, rename and alter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import Result

import lancelake
from lancelake.cli.rows import parse_type

Document = Callable[..., Any]
Run = Callable[..., Result]


def test_a_computed_column(document: Document, table: Path) -> None:
    (first, *_) = names = document("schema", table)["fields"]
    made = document("columns", "add", table, f"copy={first['name']}")
    assert made["columns"] == [*(field["name"] for field in names), "copy"]
    rows = lancelake.dataset(table).to_table(columns=[first["name"], "copy"])
    assert rows.column("copy").to_pylist() == rows.column(0).to_pylist()


def test_a_null_column(document: Document, table: Path) -> None:
    document("columns", "add", table, "--null", "v=float[4]", "--null", "t=text")
    rows = lancelake.dataset(table).to_table(columns=["v", "t"])
    assert rows.schema.types == [pa.list_(pa.float32(), 4), pa.string()]
    assert rows.column("v").null_count == rows.num_rows


def test_a_dropped_member(document: Document, table: Path) -> None:
    document("columns", "drop", table, "meta.a")
    assert "a" not in lancelake.dataset(table).schema.field("meta").type.names


def test_the_last_member_of_a_struct_is_not_dropped(run: Run, tmp_path: Path) -> None:
    lancelake.write_dataset(pa.table({"id": [1], "st": [{"a": 1, "b": 2}]}), tmp_path / "t")
    refused = run("columns", "drop", tmp_path / "t", "st.a", "st.b")
    assert (refused.exit_code, "st would be left without fields" in refused.stderr) == (2, True)
    assert lancelake.dataset(tmp_path / "t").version == 1
    assert run("columns", "drop", tmp_path / "t", "st.a", "st").exit_code == 0


def test_a_renamed_column(document: Document, table: Path) -> None:
    made = document("columns", "rename", table, "meta", "about")
    assert "about" in made["columns"]
    assert "meta" not in made["columns"]


def test_an_altered_column(document: Document, table: Path) -> None:
    document("columns", "add", table, "number=1")
    document("columns", "alter", table, "number", "--type", "int8", "--nullable", "--name", "n")
    assert lancelake.dataset(table).schema.field("n").equals(pa.field("n", pa.int8()))


def test_columns_in_another_order(document: Document, table: Path) -> None:
    assert document("columns", "reorder", table, "meta")["columns"][0] == "meta"


def test_people_see_the_version_and_the_columns(output: Callable[..., str], table: Path) -> None:
    shown = output("columns", "rename", table, "meta", "about")
    assert "version" in shown
    assert "about" in shown


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["add", "{table}"], 2),
        (["add", "{table}", "nonsense"], 2),
        (["add", "{table}", "a=1", "a=2"], 2),
        (["add", "{table}", "x=nothing + 1"], 2),
        (["add", "{table}", "x=1", "--null", "y=int8"], 2),
        (["add", "{table}", "--null", "y=number"], 2),
        (["drop", "{table}", "nothing"], 2),
        (["rename", "{table}", "nothing", "other"], 2),
        (["alter", "{table}", "meta"], 2),
        (["alter", "{table}", "meta", "--type", "int8"], 5),
        (["reorder", "{table}", "nothing"], 2),
        (["drop", "{table}", "meta", "--branch", "nowhere"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_exit_code_of(args: list[str], code: int, run: Run, sound: Path) -> None:
    result = run("columns", *(a.format(table=sound) for a in args))
    assert (result.exit_code, result.stdout) == (code, "")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int64", pa.int64()),
        ("float32", pa.float32()),
        ("double", pa.float64()),
        ("float[768]", pa.list_(pa.float32(), 768)),
        ("list<string>", pa.list_(pa.string())),
        ("timestamp[us]", pa.timestamp("us")),
        ("timestamp[ms, UTC]", pa.timestamp("ms", "UTC")),
        ("decimal:128:10:2", pa.decimal128(10, 2)),
        ("date", pa.date32()),
    ],
)
def test_words_for_types(text: str, expected: pa.DataType) -> None:
    assert parse_type(text) == expected
