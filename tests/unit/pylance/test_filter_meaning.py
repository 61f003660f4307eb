"""Filters of both languages: the same rows as official Lance, on live rows only, at any length."""

from __future__ import annotations

import functools
import operator
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError
from lancelake.expr import structure
from lancelake.expr.structure import Token, tokenize

NAN = float("nan")
ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "s": ["a", "b", None, "a", "c", "ab"],
        "f": [0.0, -0.0, NAN, None, 3.0, -1.0],
        "h": pa.array([0.0, -0.0, NAN, None, 3.0, -1.0], pa.float32()),
    }
)


@pytest.mark.parametrize(
    "filter",
    [
        ~pc.field("s").isin(["a"]),
        pc.field("s").isin(["a", None]),
        ~pc.field("s").isin(["a", None]),
        pc.field("f") > 2,
        pc.field("f") >= 0.0,
        pc.field("f") == 0.0,
        ~(pc.field("f") < 2),
        pc.field("h").isin([0.0, 5.0, 6.0, 7.0]),
        pc.field("s").is_null() | (pc.field("id") == 1),
        pc.is_nan(pc.field("f")),
        pc.starts_with(pc.field("s"), "a"),
        pc.coalesce(pc.field("s"), "b") == "b",
        pc.field("id") + 1 > 3,
        pc.field("id").isin(pa.array([], pa.int64())),
        "f IN (0.0, 5, 6, 7)",
        "f IN (-0.0, 5, 6)",
        "f NOT IN (0.0, 5, 6, 7)",
        "f = 0.0",
        "f < 0.0",
        "abs(f) IN (0.0, 5, 6, 7)",
    ],
    ids=str,
)
def test_rows_are_those_that_official_lance_keeps(tmp_path: Path, filter: Any) -> None:
    lance.write_dataset(ROWS, tmp_path / "t")
    expected = official.dataset(tmp_path / "t").to_table(["id"], filter)["id"].to_pylist()
    ours = lance.dataset(tmp_path / "t")
    assert ours.to_table(["id"], filter)["id"].to_pylist() == expected
    assert ours.count_rows(filter) == len(expected)


def test_delete_by_a_pyarrow_expression_keeps_rows_for_which_it_is_null(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    table.delete(~pc.field("s").isin(["a"]))
    assert table.to_table()["s"].to_pylist() == ["a", None, "a"]


@pytest.fixture
def without_zero(tmp_path: Path) -> lance.LanceDataset:
    """Return a table of numbers and texts whose zero and whose word are deleted."""
    rows = pa.table({"x": [0, 1, 2, 5], "t": ["secret", "1", "2", "3"]})
    table = lance.write_dataset(rows, tmp_path / "t")
    table.delete("x = 0")
    return table


@pytest.mark.parametrize("filter", ["10 / x > 1", "CAST(t AS INT) > 0", "x != 0 AND 10 / x > 1"])
def test_an_expression_does_not_see_deleted_rows(
    without_zero: lance.LanceDataset, filter: str
) -> None:
    assert without_zero.to_table(filter=filter).num_rows == 3
    assert without_zero.to_table(["t"], filter).num_rows == 3
    assert without_zero.count_rows(filter) == 3
    without_zero.update({"t": "'7'"}, where=filter)
    assert without_zero.to_table()["t"].to_pylist() == ["7", "7", "7"]
    without_zero.delete(filter)
    assert without_zero.count_rows() == 0


def test_a_condition_guards_an_expression_beside_it(tmp_path: Path) -> None:
    table = lance.write_dataset(pa.table({"x": [0, 1, 20]}), tmp_path / "t")
    assert table.to_table(filter="10 / x > 1 AND x != 0")["x"].to_pylist() == [1]
    assert table.to_table(filter="x = 0 OR 10 / x > 1")["x"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("part", "kept"), [("id = {}", 6), ("id + 0 = {}", 6), ("id <> {}", 6), ("s = '{}'", 0)]
)
def test_a_chain_of_many_conditions_is_evaluated(tmp_path: Path, part: str, kept: int) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    assert table.count_rows(" OR ".join(part.format(n) for n in range(12_000))) == kept


@pytest.mark.parametrize(
    ("join", "kept"),
    [(operator.or_, 6), (lambda left, right: right | left, 6), (operator.and_, 0)],
    ids=["or", "or_from_the_right", "and"],
)
def test_a_chain_of_many_expressions_is_evaluated(
    tmp_path: Path, join: Callable[[pc.Expression, pc.Expression], pc.Expression], kept: int
) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    chain = functools.reduce(join, [pc.field("id") == n for n in range(3_000)])
    assert table.count_rows(chain) == kept


def test_an_expression_of_any_depth_is_refused(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    deep = functools.reduce(lambda value, _: value + 1, range(3_000), pc.field("id"))
    with pytest.raises(InvalidExpressionError):
        table.count_rows(deep > 3)


def test_a_long_list_is_evaluated(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    assert table.count_rows(f"id IN ({', '.join(map(str, range(3, 100_000)))})") == 3


def test_a_long_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    text = f"id IN ({', '.join(map(str, range(3, 2_000)))})"
    parsed: list[str] = []

    def noted(sql: str) -> list[Token]:
        parsed.append(sql)
        return tokenize(sql)

    monkeypatch.setattr(structure, "tokenize", noted)
    assert table.count_rows(text) == 3
    assert parsed == [text]


_TRY = """
import sys
import pyarrow as pa
from lancelake.errors import InvalidExpressionError
from lancelake.expr.predicate import predicate
from lancelake.format.arrow_schema import from_arrow
schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
try:
    predicate(eval(sys.argv[1]), from_arrow(schema), schema, ())
except InvalidExpressionError as error:
    assert len(str(error)) < 1000, len(str(error))
    print("refused")
else:
    print("taken")
"""


@pytest.mark.parametrize(
    "text",
    [
        "'id' + ' + 1' * 30_000 + ' > 1'",
        "'(' * 20_000 + 'id = 1' + ')' * 20_000",
        "'abs(' * 20_000 + 'id' + ')' * 20_000 + ' = 1'",
        "'id' + '::int' * 30_000 + ' = 1'",
        "'s' + \" || 'a'\" * 30_000 + ' = 1'",
        "'coalesce(' + ' OR '.join(['id + 0 = 1'] * 30_000) + ', false)'",
        "'CASE WHEN id = 1 THEN ' * 20_000 + 'true' + ' END' * 20_000",
    ],
)
def test_an_expression_of_any_depth_is_refused_and_not_a_crash(text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _TRY, text], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "refused"), done.stderr


def _called_from(depth: int, call: Callable[[], Any]) -> Any:
    return call() if depth == 0 else _called_from(depth - 1, call)


@pytest.mark.parametrize("level", ["(id < 9 AND ({}))", "NOT (s = 'q' OR {})"])
def test_the_depth_of_an_expression_does_not_depend_on_its_caller(
    tmp_path: Path, level: str
) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")

    def nested(depth: int) -> str:
        return functools.reduce(lambda text, _: level.format(text), range(depth), "id = 1")

    expected = table.count_rows(nested(50))
    assert _called_from(400, lambda: table.count_rows(nested(50))) == expected
    with pytest.raises(InvalidExpressionError, match="more than 100 deep"):
        _called_from(400, lambda: table.count_rows(nested(101)))


def test_any_number_of_negations_is_read(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    assert table.count_rows("NOT " * 30_001 + "id = 1") == 5


def test_an_error_about_a_long_expression_shows_its_start(tmp_path: Path) -> None:
    table = lance.write_dataset(ROWS, tmp_path / "t")
    with pytest.raises(InvalidExpressionError, match="No field named missing") as caught:
        table.count_rows(" OR ".join(f"missing = {n}" for n in range(1000)))
    assert len(str(caught.value)) < 1000
