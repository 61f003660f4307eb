"""`lancelake ls`, and advice about places without a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lancelake.pylance as lance
from tests.cli.conftest import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, rows in (("a.lance", 3), ("deep/er/b.lance", 5)):
        lance.write_dataset(pa.table({"x": range(rows)}), tmp_path / name)
    (tmp_path / "broken.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "broken.lance" / "_versions" / "1.manifest").write_bytes(b"nothing")
    return tmp_path


def test_tables_are_listed_with_rows_and_version(
    folder: Path, document: Callable[..., Any]
) -> None:
    found = {Path(t["uri"]).name: t for t in document("ls", folder)["tables"]}
    assert [(n, found[n]["rows"], found[n]["version"]) for n in ("a.lance", "b.lance")] == [
        ("a.lance", 3, 1),
        ("b.lance", 5, 1),
    ]
    assert found["broken.lance"]["error"]


def test_names_are_relative_to_the_folder(folder: Path, output: Callable[..., str]) -> None:
    lines = output("ls", folder).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [
        "a.lance",
        "broken.lance",
        "deep/er/b.lance",
    ]
    assert lines[-1] == "3 tables"


def test_a_folder_without_tables_exits_with_3(run: Run, tmp_path: Path) -> None:
    assert run("ls", tmp_path).exit_code == 3


def test_advice_names_the_command_for_what_is_there(run: Run, folder: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), folder / "x.parquet")
    (folder / "plain").mkdir()
    pq.write_table(pa.table({"x": [1]}), folder / "plain" / "x.parquet")
    (folder / "delta" / "_delta_log").mkdir(parents=True)
    cases = {
        "x.parquet": "lancelake write",
        "plain": "lancelake convert",
        "delta": "is a Delta table",
        "deep": "er/b.lance",
    }
    for name, advice in cases.items():
        result = run("info", folder / name, width=300)
        assert result.exit_code == 3
        assert advice in result.stderr, name
    assert "lancelake" not in run("info", folder / "missing", width=300).stderr
