"""Supported filters, and the rows they select."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lancelake.errors import InvalidExpressionError, InvalidRequestError, UnsupportedError
from lancelake.expr.predicate import predicate
from lancelake.format.arrow_schema import from_arrow

BATCH = pa.RecordBatch.from_pydict(
    {
        "zz": pa.array([7, 8, 9], pa.int64()),
        "i": pa.array([1, 2, None], pa.int64()),
        "s": pa.array(["a", "b", None]),
        "st": pa.array([{"x": 1}, None, {"x": 3}], pa.struct([("x", pa.int64())])),
        "b": pa.array([True, False, None]),
        "none": pa.nulls(3),
        "größe": pa.array([1, 2, 3], pa.int64()),
    }
)
SCHEMA = from_arrow(BATCH.schema)


def understood(filter: Any) -> Any:
    return predicate(filter, SCHEMA, BATCH.schema, ())


def kept(filter: Any) -> list[int]:
    found = understood(filter)
    names = {path[0] for path in found.paths}
    needed = BATCH.select([name for name in BATCH.schema.names if name in names])
    mask = found(needed if names else BATCH.select(["i"]))
    return [row for row, keep in enumerate(mask.to_pylist()) if keep]


@pytest.mark.parametrize(
    ("filter", "rows"),
    [
        ("i > 1", [1]),
        ("b", [0]),
        ("NOT b", [1]),
        ("st.x = 3", [2]),
        ("st IS NULL", [1]),
        ("true", [0, 1, 2]),
        ("i = 1 OR NULL", [0]),
        (pc.field("i") > 1, [1]),
        (pc.field("b"), [0]),
        (~pc.field("b"), [1]),
        (pc.field("st", "x") == 3, [2]),
        (pc.field("st").is_null(), [1]),
        (pc.field("größe").isin([1, 3]), [0, 2]),
        (pc.field("s").is_null() | (pc.field("i") == 1), [0, 2]),
        (pc.scalar(True), [0, 1, 2]),
    ],
)
def test_rows_kept(filter: Any, rows: list[int]) -> None:
    assert kept(filter) == rows


@pytest.mark.parametrize("filter", ["i", "s", "1", "NULL", "none", "st", "i + 1"])
def test_value_that_is_no_condition_is_refused(filter: str) -> None:
    with pytest.raises(InvalidExpressionError, match="does not return a boolean"):
        understood(filter)


@pytest.mark.parametrize(
    "filter",
    [pc.field("nosuch") == 1, pc.field("i") == "one", pc.field("i"), pc.field("st", "y") == 1],
    ids=["unknown field", "other type", "no condition", "unknown member"],
)
def test_pyarrow_expression_that_does_not_fit_is_refused(filter: pc.Expression) -> None:
    with pytest.raises(InvalidExpressionError, match=r"expression|filter"):
        understood(filter)


def test_pyarrow_expression_with_positions_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="by position"):
        understood(pc.field(0) == 8)


def test_pyarrow_function_without_a_counterpart_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="utf8_reverse"):
        understood(pc.utf8_reverse(pc.field("s")) == "a")


@pytest.mark.parametrize("filter", [5, None, ["i = 1"], {"i": 1}])
def test_anything_else_is_refused(filter: Any) -> None:
    with pytest.raises(InvalidRequestError, match="SQL text or a pyarrow expression"):
        understood(filter)


def test_pyarrow_expression_names_only_what_it_may_look_at() -> None:
    assert understood(pc.field("i") > 1).paths == (("i",),)


@pytest.mark.parametrize("filter", ["st.x = 3", pc.field("st", "x") == 3], ids=["sql", "pyarrow"])
def test_predicate_survives_pickling(filter: Any) -> None:
    found = understood(filter)
    again = pickle.loads(pickle.dumps(found))
    needed = BATCH.select([path[0] for path in again.paths])
    assert again(needed).to_pylist() == found(needed).to_pylist()
