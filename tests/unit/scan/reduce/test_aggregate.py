"""Partial aggregates add up to what exact arithmetic says."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lancelake.scan.reduce import Function, Kind, PartialAggregation

INT64 = st.integers(-(2**63), 2**63 - 1)
KEYS = st.sampled_from(["a", "b", None])


def results(
    rows: list[dict[str, Any]],
    schema: pa.Schema,
    functions: list[Function],
    keys: tuple[str, ...],
) -> list[dict[str, Any]]:
    """Return all partial results of rows that come in batches of two."""
    partial = PartialAggregation(
        keys=keys,
        key_names=tuple(f"key {key}" for key in keys),
        functions=tuple(functions),
        inputs=schema,
    )
    batches = pa.Table.from_pylist(rows, schema=schema).to_batches(max_chunksize=2)
    return [row for batch in partial.run(batches) for row in batch.to_pylist()]


def function(kind: Kind, column: str | None, name: str = "value") -> Function:
    return Function(kind=kind, column=column, name=name)


@given(st.lists(st.tuples(KEYS, st.none() | INT64)))
def test_pieces_of_integer_sums_add_up_exactly(rows: list[tuple[str | None, int | None]]) -> None:
    schema = pa.schema([("k", pa.string()), ("v", pa.int64())])
    data: list[dict[str, Any]] = [{"k": k, "v": v} for k, v in rows]
    found = results(data, schema, [function(Kind.SUM, "v")], ("k",))
    for key in ("a", "b", None):
        values = [v for k, v in rows if k == key and v is not None]
        parts = [r["value"] for r in found if r["key k"] == key and r["value"] is not None]
        assert sum(parts) == sum(values)
        assert bool(parts) == bool(values)


@given(st.lists(st.decimals(min_value="-999.99", max_value="999.99", places=2)))
def test_pieces_of_decimal_sums_fit_the_type_of_the_column(values: list[Decimal]) -> None:
    schema = pa.schema([("v", pa.decimal128(5, 2))])
    found = results([{"v": v} for v in values], schema, [function(Kind.SUM, "v")], ())
    parts = [r["value"] for r in found if r["value"] is not None]
    assert sum(parts, Decimal(0)) == sum(values, Decimal(0))
    assert all(abs(part) <= Decimal("999.99") for part in parts)


def test_not_a_number_is_the_largest_number() -> None:
    schema = pa.schema([("k", pa.string()), ("v", pa.float64())])
    data = [{"k": "a", "v": math.nan}, {"k": "a", "v": 1.0}, {"k": "b", "v": math.nan}]
    wanted = [function(Kind.MIN, "v", "low"), function(Kind.MAX, "v", "high")]
    found = {r["key k"]: r for r in results(data, schema, wanted, ("k",))}
    assert found["a"]["low"] == 1.0
    assert math.isnan(found["a"]["high"])
    assert math.isnan(found["b"]["low"])


def test_no_rows_make_one_result_without_groups() -> None:
    schema = pa.schema([("v", pa.int32())])
    wanted = [function(Kind.COUNT, "v", "count"), function(Kind.SUM, "v", "sum")]
    assert results([], schema, wanted, ()) == [{"count": 0, "sum": None}]


def test_no_rows_make_no_result_with_groups() -> None:
    schema = pa.schema([("v", pa.int32())])
    assert results([], schema, [function(Kind.COUNT_ALL, None)], ("v",)) == []


def test_counts_distinguish_values_from_rows() -> None:
    schema = pa.schema([("v", pa.int32())])
    wanted = [function(Kind.COUNT, "v", "values"), function(Kind.COUNT_ALL, None, "rows")]
    found = results([{"v": 1}, {"v": None}, {"v": 3}], schema, wanted, ())
    assert found == [{"values": 2, "rows": 3}]
