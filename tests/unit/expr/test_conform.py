"""Literals take the type of the compared column."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext
from datafusion.expr import Expr

from lancelake.expr.evaluate import conform

BATCH = pa.RecordBatch.from_pydict(
    {
        "f32": pa.array([0.1, 0.2, 1.0, None], pa.float32()),
        "f16": pa.array([0.1, 0.2, 1.0, None], pa.float16()),
        "i8": pa.array([1, 2, 127, None], pa.int8()),
        "u64": pa.array([1, 2, 2**64 - 1, None], pa.uint64()),
        "dec": pa.array([Decimal("0.10"), Decimal("0.20"), Decimal("1.00"), None]),
        "text": pa.array(["a", "b", "c", None]),
    }
)


def evaluated(sql: str, *, is_condition: bool = True) -> pa.Array:
    frame = SessionContext().read_batch(BATCH)

    def type_of(node: Expr) -> pa.DataType:
        return frame.select(node).schema().field(0).type

    meant = conform(frame.parse_sql_expr(sql), BATCH.schema, type_of, is_condition=is_condition)
    (batch,) = frame.select(meant.alias("v")).collect()
    return batch.column(0)


@pytest.mark.parametrize("column", ["f32", "f16"])
@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("{} = 0.1", [0]),
        ("0.1 = {}", [0]),
        ("{} <> 0.1", [1, 2]),
        ("{} < 0.2", [0]),
        ("{} <= 0.2", [0, 1]),
        ("{} IN (0.1, 0.2)", [0, 1]),
        ("{} NOT IN (0.1, 0.2)", [2]),
        ("{} BETWEEN 0.1 AND 0.2", [0, 1]),
        ("{} NOT BETWEEN 0.1 AND 0.2", [2]),
        ("NOT {} = 0.1", [1, 2]),
        ("{} = 0.1 OR {} = 1", [0, 2]),
    ],
)
def test_short_float_meets_a_number_as_written(column: str, sql: str, kept: list[int]) -> None:
    mask = evaluated(sql.replace("{}", column)).to_pylist()
    assert [row for row, keep in enumerate(mask) if keep] == kept


@pytest.mark.parametrize(
    ("sql", "dtype"),
    [
        ("i8 + 1", pa.int8()),
        ("i8 * 1000", pa.int64()),
        ("f32 * 2", pa.float32()),
        ("2 - f32", pa.float32()),
        ("dec + 1", pa.decimal128(4, 2)),
    ],
)
def test_arithmetic_keeps_the_type_of_the_column_where_the_number_fits(
    sql: str, dtype: pa.DataType
) -> None:
    assert evaluated(sql).type == dtype


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("i8 > 1000", []),
        ("i8 < 1000", [0, 1, 2]),
        ("i8 > -1000", [0, 1, 2]),
        ("u64 > -1", [0, 1, 2]),
        ("u64 = 18446744073709551615", [2]),
        ("i8 = 1.5", []),
        ("i8 > 1.5", [1, 2]),
        ("dec > 0.15", [1, 2]),
    ],
)
def test_number_outside_the_column_is_compared_by_value(sql: str, kept: list[int]) -> None:
    mask = evaluated(sql).to_pylist()
    assert [row for row, keep in enumerate(mask) if keep] == kept


@pytest.mark.parametrize("joined", ["AND", "OR"])
def test_chain_means_the_same_as_its_parts_one_by_one(joined: str) -> None:
    parts = [f"i8 <> {n}" for n in range(1, 9)]
    whole = evaluated(f" {joined} ".join(parts))
    nested = parts[-1]
    for part in reversed(parts[:-1]):
        nested = f"({part} {joined} {nested})"
    assert whole == evaluated(nested)


def test_text_beside_a_number_is_left_to_the_engine() -> None:
    assert evaluated("text = 'a'").to_pylist() == [True, False, False, None]


def test_match_outside_a_condition_keeps_its_groups() -> None:
    found = evaluated("regexp_match(text, '[ab]')", is_condition=False)
    assert found.to_pylist() == [["a"], ["b"], None, None]


def test_match_within_a_condition_is_true_where_something_matches() -> None:
    kept = evaluated("regexp_match(text, '[ab]') AND i8 < 2")
    assert kept.to_pylist() == [True, False, False, False]
