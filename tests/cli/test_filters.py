"""Filters of commands: live rows only, equal zeros, and any length and depth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import Result

import lancelake.pylance as lance

Document = Callable[..., Any]
Run = Callable[..., Result]


@pytest.fixture
def without_zero(tmp_path: Path) -> Path:
    """Return a table of numbers and texts whose zero and whose word are deleted."""
    rows = pa.table({"x": [0, 1, 2, 5], "t": ["secret", "1", "2", "3"]})
    lance.write_dataset(rows, tmp_path / "t.lance").delete("x = 0")
    return tmp_path / "t.lance"


@pytest.mark.parametrize("filter", ["10 / x > 1", "CAST(t AS INT) > 0", "x != 0 AND 10 / x > 1"])
def test_an_expression_does_not_see_deleted_rows(
    document: Document, without_zero: Path, filter: str
) -> None:
    assert document("count", without_zero, "--filter", filter)["rows"] == 3
    assert document("update", without_zero, "--set", "t = '7'", "--where", filter)["updated"] == 3
    assert document("delete", without_zero, "--where", filter)["deleted"] == 3


@pytest.mark.parametrize("filter", ["f IN (0.0, 5, 6, 7)", "f IN (-0.0, 5)", "f = 0.0"])
def test_zeros_are_equal(document: Document, tmp_path: Path, filter: str) -> None:
    lance.write_dataset(pa.table({"f": [0.0, -0.0, 3.0, None]}), tmp_path / "t.lance")
    assert document("count", tmp_path / "t.lance", "--filter", filter)["rows"] == 2


@pytest.mark.parametrize("part", ["x = {}", "x + 0 = {}"])
def test_a_chain_of_many_conditions_is_evaluated(
    document: Document, without_zero: Path, part: str
) -> None:
    chain = " OR ".join(part.format(n) for n in range(2, 6_000))
    assert document("count", without_zero, "--filter", chain)["rows"] == 2


@pytest.mark.parametrize("command", [["count", "--filter"], ["delete", "--where"]])
@pytest.mark.parametrize(
    "filter",
    ["(" * 101 + "x = 1" + ")" * 101, "x" + " + 1" * 3_000 + " > 1"],
    ids=["parentheses", "operators"],
)
def test_an_expression_of_any_depth_is_refused(
    run: Run, without_zero: Path, command: list[str], filter: str
) -> None:
    name, option = command
    result = run(name, without_zero, option, filter)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert lance.dataset(without_zero).count_rows() == 3
