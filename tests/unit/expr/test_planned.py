"""Conditions of a plan that a scan evaluates, and their columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.expr import Expr, Filter

from lancelake.expr.planned import PlannedFilter, planned, table_scans

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])


def conditions(query: str) -> list[Expr]:
    """Return the conditions in the plan of a query."""
    context = SessionContext()
    arrays = [pa.array([], field.type) for field in SCHEMA]
    batch = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    context.register_record_batches("t", [[batch]])
    (trail,) = table_scans(context.sql(query).optimized_logical_plan())
    nodes = [node.to_variant() for node in trail]
    return [Expr(node.predicate()) for node in nodes if isinstance(node, Filter)]


def found(where: str) -> PlannedFilter | None:
    """Return what a scan can check of a condition."""
    return planned(conditions(f"SELECT a FROM t WHERE {where}"), "t", SCHEMA)


def mask(found: PlannedFilter) -> list[bool | None]:
    """Return the truth for a few rows."""
    values = {"a": [1, 2, None], "b": ["x", "y", "x"], "c": [0.5, float("nan"), 2.0]}
    truth: list[bool | None] = found.predicate(
        pa.RecordBatch.from_pydict(values, SCHEMA)
    ).to_pylist()
    return truth


@pytest.mark.parametrize(
    ("where", "columns", "truth"),
    [
        ("a = 1", {"a"}, [True, False, None]),
        ("b LIKE 'x%' AND c > 1", {"b", "c"}, [False, False, True]),
        ("c > 1", {"c"}, [False, True, True]),
        ("a IS NULL OR b = 'y'", {"a", "b"}, [False, True, True]),
        ("a NOT IN (1, 5)", {"a"}, [False, True, None]),
    ],
)
def test_a_condition_means_what_it_means_in_the_query(
    where: str, columns: set[str], truth: list[bool | None]
) -> None:
    predicate = found(where)
    assert predicate is not None
    assert predicate.is_complete
    assert {name for (name,) in predicate.predicate.paths} == columns
    assert mask(predicate) == truth


def test_what_changes_each_time_is_left_to_the_query() -> None:
    assert found("random() < 0.5") is None
    predicate = found("random() < 0.5 AND a = 1")
    assert predicate is not None
    assert not predicate.is_complete
    assert predicate.predicate.paths == (("a",),)


def test_columns_that_a_scan_does_not_have_are_left_to_the_query() -> None:
    predicate = planned(
        conditions("SELECT a FROM t WHERE a = 1 AND b = 'x'"), "t", SCHEMA.remove(1)
    )
    assert predicate is not None
    assert not predicate.is_complete
    assert predicate.predicate.paths == (("a",),)
