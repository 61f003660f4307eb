"""The conflict matrix in the terminal and in the documentation matches the rules."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from lancelake.txn.conflict_matrix import matrix

REPO = Path(__file__).parents[2]


def test_the_grid_has_the_marks_of_the_rules(output: Callable[..., str]) -> None:
    lines = output("matrix").splitlines()
    for number, row in enumerate(matrix(), start=1):
        marks = [cell.mark for cell in row]
        assert lines[number].split() == [str(number), row[0].mine.__name__, *marks]


def test_the_document_has_every_case(document: Callable[..., Any]) -> None:
    body = document("matrix")
    assert set(body["meanings"]) == {"ok", "retry", "refused"}
    cells = [cell for row in matrix() for cell in row]
    assert [len(c["cases"]) for c in body["cells"]] == [len(c.cases) for c in cells]
    assert set(body["cells"][0]["cases"][0]) == {"mine", "theirs", "outcome", "reason"}


def test_an_operation_is_shown_with_reasons(output: Callable[..., str]) -> None:
    lines = [line.split() for line in output("matrix", "append").splitlines()]
    assert ["Append", "Overwrite", "X", "the", "table", "was", "replaced"] in lines


def test_a_pair_is_shown_by_example(output: Callable[..., str]) -> None:
    text = output("matrix", "Update", "Append")
    assert "keys 0 to 4" in text
    assert "added rows may have the same keys" in text


def test_an_unknown_operation_exits_with_3(run: Callable[..., Result]) -> None:
    result = run("matrix", "Nonsense")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "DataReplacement" in result.stderr


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_of_the_grid_is_wider_than_the_terminal(
    width: int, output: Callable[..., str]
) -> None:
    assert max(map(len, output("matrix", width=width).splitlines())) <= width


def test_the_page_about_conflicts_is_current() -> None:
    spec = importlib.util.spec_from_file_location("page", REPO / "scripts" / "conflicts_page.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = module.PAGE.read_text(encoding="utf-8")
    assert written == module.page(), "run scripts/conflicts_page.py"
