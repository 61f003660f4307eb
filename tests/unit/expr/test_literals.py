"""Constants as values of a column's type, and as SQL that gives the same value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext

from lancelake.expr.literals import to_sql, typed, typed_array

VALUES = [
    pa.scalar(None, pa.int64()),
    pa.scalar(True),
    pa.scalar(-5, pa.int64()),
    pa.scalar(1.5),
    pa.scalar(float("nan")),
    pa.scalar(float("-inf")),
    pa.scalar(0.1, pa.float32()),
    pa.scalar("it's"),
    pa.scalar(b"\x00\xff"),
    pa.scalar(dt.date(2020, 2, 29)),
    pa.scalar(5, pa.timestamp("ns", "UTC")),
    pa.scalar(-5, pa.timestamp("us")),
    pa.scalar(7, pa.duration("s")),
    pa.scalar(7, pa.time64("us")),
    pa.scalar(Decimal("1.50"), pa.decimal128(10, 2)),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_sql_of_a_constant_has_its_value(value: pa.Scalar) -> None:
    sql = to_sql(value)
    (batch,) = SessionContext().sql(f"SELECT {sql} AS v").collect()
    found = batch.column(0).cast(value.type)[0]
    assert found.equals(value) or str(found) == str(value)


def test_constant_of_a_nested_type_has_no_sql() -> None:
    assert to_sql(pa.scalar([1])) is None


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (pa.scalar(3), pa.int8(), pa.scalar(3, pa.int8())),
        (pa.scalar(300), pa.int8(), None),
        (pa.scalar(-1), pa.uint8(), None),
        (pa.scalar(1.5), pa.int64(), None),
        (pa.scalar(1), pa.float32(), pa.scalar(1.0, pa.float32())),
        (pa.scalar(1), pa.float16(), None),
        (pa.scalar("a"), pa.large_string(), pa.scalar("a", pa.large_string())),
        (pa.scalar("a"), pa.int64(), None),
        (pa.scalar(2), pa.decimal128(4, 2), pa.scalar(Decimal("2.00"), pa.decimal128(4, 2))),
        (pa.scalar(200), pa.decimal128(4, -2), None),
        (
            pa.scalar(5000, pa.timestamp("ns")),
            pa.timestamp("us"),
            pa.scalar(5, pa.timestamp("us")),
        ),
        (pa.scalar(5001, pa.timestamp("ns")), pa.timestamp("us"), None),
        (pa.scalar(5, pa.timestamp("us", "UTC")), pa.timestamp("us"), None),
        (pa.scalar(None, pa.int64()), pa.int64(), None),
    ],
)
def test_constant_takes_the_type_of_a_column_where_it_keeps_its_value(
    value: pa.Scalar, dtype: pa.DataType, expected: pa.Scalar | None
) -> None:
    assert typed(value, dtype) == expected


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([1, 2, 1], pa.int8(), [1, 2]),
        ([1, 300], pa.int8(), None),
        ([1, 2.5], pa.float64(), [1.0, 2.5]),
        ([1, 2.5], pa.int64(), None),
        (["a", "a"], pa.string(), ["a"]),
        (["a", 1], pa.string(), None),
        ([True], pa.bool_(), [True]),
        ([True], pa.int64(), None),
    ],
)
def test_list_takes_the_type_of_a_column(
    values: list[object], dtype: pa.DataType, expected: list[object] | None
) -> None:
    found = typed_array(values, dtype)
    assert (None if found is None else found.to_pylist()) == expected


@pytest.mark.parametrize(
    "value",
    [
        pa.scalar(Decimal("2.00"), pa.decimal256(76, 2)),
        pa.scalar(2, pa.duration("ms")),
        pa.scalar(b"0123", pa.binary(4)),
    ],
    ids=lambda value: str(value.type),
)
def test_a_constant_of_the_type_of_the_column_is_compared(value: pa.Scalar) -> None:
    assert typed(value, value.type) == value
