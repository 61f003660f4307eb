"""Values that SQL functions make as large as an argument says are limited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidExpressionError
from lancelake.expr.structure import with_size_limits


@pytest.fixture
def dataset(tmp_path: Path) -> lance.LanceDataset:
    rows = pa.table(
        {
            "s": ["a", "bb"],
            "large": pa.array(["a", "bb"], pa.large_string()),
            "n": [1, 2],
            "u": pa.array([1, 2], pa.uint64()),
        }
    )
    return lance.write_dataset(rows, tmp_path / "t")


def _rows(dataset: lance.LanceDataset, query: str) -> list[dict[str, Any]]:
    batches = dataset.sql(query).build().to_batch_records()
    return pa.Table.from_batches(batches).to_pylist()


@pytest.mark.parametrize(
    "call",
    [
        "repeat('x', 400000000)",
        "repeat(s, 400000000)",
        "repeat(s, n * 400000000)",
        "REPEAT (s, CAST('400000000' AS BIGINT))",
        "repeat(repeat('x', 60000), 60000)",
        "lpad('x', 2000000000)",
        "lpad(s, 200000)",
        "rpad(s, n * 200000000, '*')",
        "array_repeat(1, 400000000)",
        "array_repeat(s, n * 400000000)",
        "array_repeat(array_repeat(1, 3000), 3000)",
        "list_resize([1], 400000000)",
        "range(400000000)",
        "generate_series(1, 400000000)",
        "generate_series(400000000, -400000000, -1)",
    ],
)
def test_a_value_that_is_too_large_is_refused(dataset: lance.LanceDataset, call: str) -> None:
    with pytest.raises(InvalidExpressionError, match=r"values of \w+ would be too large"):
        _rows(dataset, f"SELECT {call} AS made FROM dataset")


@pytest.mark.parametrize("filter", ["length(repeat(s, 400000000)) = 1", "lpad('', 400000000) = ''"])
def test_a_condition_with_such_a_value_is_refused(dataset: lance.LanceDataset, filter: str) -> None:
    with pytest.raises(InvalidExpressionError, match="would be too large"):
        dataset.count_rows(filter)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("repeat(s, 3)", ["aaa", "bbbbbb"]),
        ("repeat(large, u)", ["a", "bbbb"]),
        ("repeat(repeat(s, 2), n)", ["aa", "bbbbbbbb"]),
        ("repeat('x', NULL)", [None, None]),
        ("repeat(s, -1)", ["", ""]),
        ("lpad(s, 3, '*')", ["**a", "*bb"]),
        ("array_repeat(array_repeat(n, 2), 2)", [[[1, 1], [1, 1]], [[2, 2], [2, 2]]]),
        ("range(1, 3)", [[1, 2], [1, 2]]),
        ("'repeat(' || s", ["repeat(a", "repeat(bb"]),
    ],
)
def test_small_values_are_made(dataset: lance.LanceDataset, call: str, expected: list[Any]) -> None:
    assert [
        row["made"] for row in _rows(dataset, f"SELECT {call} AS made FROM dataset")
    ] == expected
    assert dataset.to_table(columns={"made": call})["made"].to_pylist() == expected


def test_results_keep_the_names_of_the_query(dataset: lance.LanceDataset) -> None:
    (row, _) = _rows(dataset, "SELECT repeat(s, 2), count(*) FROM dataset GROUP BY repeat(s, 2)")
    assert list(row) == ["repeat(dataset.s,Int64(2))", "count(*)"]


def test_a_long_series_may_be_a_table(dataset: lance.LanceDataset) -> None:
    query = "SELECT count(*) AS made FROM range(1, 4000001)"
    assert _rows(dataset, query) == [{"made": 4_000_000}]


def test_deeply_nested_calls_are_refused() -> None:
    with pytest.raises(InvalidExpressionError, match="nested more than 4 times"):
        with_size_limits("repeat(" * 9 + "s" + ", 1)" * 9)


def test_other_text_is_not_changed() -> None:
    for sql in ("SELECT a FROM t", "SELECT repeat FROM t", "SELECT 'repeat(x, 1)'", "repeat(s)"):
        assert with_size_limits(sql) == sql
