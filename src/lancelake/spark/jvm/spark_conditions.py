"""Conditions and expressions of Spark, translated.

In Spark, NaN of either sign equals itself and is greater than every number, and the two zeros are
equal. In conditions, NaN with a sign is less than every number, so it is tested separately.
Predicates that may have another meaning are left to Spark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from lancelake.core.values.conditions import (
    Column,
    ColumnComparison,
    Comparison,
    Condition,
    Constant,
    IsNan,
    IsNull,
    Membership,
    Operator,
    TextMatch,
    TextTest,
    all_of,
    any_of,
    fits,
    is_binary,
    is_float,
    is_text,
    negated,
)
from lancelake.spark.jvm.catalyst import describe, describe_one
from lancelake.spark.jvm.gateway import Gateway
from lancelake.spark.values.spark_types import TypeOf

Value = bool | int | float | str | bytes | Decimal | None

_OPERATORS = {o.value: o for o in Operator} | {"<>": Operator.NOT_EQUAL}
_TEXT_TESTS = {
    "STARTS_WITH": TextTest.STARTS_WITH,
    "ENDS_WITH": TextTest.ENDS_WITH,
    "CONTAINS": TextTest.CONTAINS,
}
_NULL_SAFE = "<=>"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLiteral:
    """A literal in Spark's representation: days for dates, microseconds for times."""

    value: Value


Operand = Column | SparkLiteral | Condition


def spark_condition(name: str, operands: Sequence[Operand]) -> Condition | None:
    """Return the condition for a predicate of this name; None if the meaning may differ."""
    match name:
        case "AND" | "OR":
            parts = [part for part in operands if not isinstance(part, Column | SparkLiteral)]
            join = all_of if name == "AND" else any_of
            return join(parts) if len(parts) == len(operands) else None
        case "NOT":
            (part,) = operands
            return None if isinstance(part, Column | SparkLiteral) else negated(part)
        case "ALWAYS_TRUE" | "ALWAYS_FALSE":
            return Constant(truth=name == "ALWAYS_TRUE")
        case "IS_NULL" | "IS_NOT_NULL":
            return _null_test(name, operands[0])
        case "IN":
            return _membership(operands)
        case _ if name in _TEXT_TESTS:
            return _text_test(_TEXT_TESTS[name], operands)
        case _ if name in _OPERATORS or name == _NULL_SAFE:
            return _comparison(name, *operands)
        case _:
            return None


def typed_value(value: Value, dtype: pa.DataType) -> pa.Scalar | None:
    """Convert a non-null value to a column's type."""
    match value:
        case bool():
            return pa.scalar(value) if pa.types.is_boolean(dtype) else None
        case int():
            return _whole(value, dtype)
        case float():
            return pa.scalar(value, dtype) if is_float(dtype) else None
        case str():
            return pa.scalar(value, dtype) if is_text(dtype) else None
        case bytes() | bytearray():
            return pa.scalar(bytes(value), dtype) if is_binary(dtype) else None
        case Decimal():
            return _decimal(value, dtype)
        case _:
            return None


def _whole(value: int, dtype: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_integer(dtype):
        return pa.scalar(value, dtype) if fits(value, dtype) else None
    is_time = pa.types.is_timestamp(dtype) and dtype.unit == "us"
    is_number = pa.types.is_date32(dtype) or is_time
    return pa.scalar(value, dtype) if is_number else None


def _decimal(value: Decimal, dtype: pa.DataType) -> pa.Scalar | None:
    if not pa.types.is_decimal128(dtype):
        return None
    try:
        return pa.scalar(value, dtype)
    except pa.ArrowInvalid:
        return None


def _null_test(name: str, operand: Operand) -> Condition | None:
    if not isinstance(operand, Column):
        return None
    test = IsNull(column=operand)
    return test if name == "IS_NULL" else negated(test)


def _text_test(test: TextTest, operands: Sequence[Operand]) -> Condition | None:
    column, text = operands
    if not isinstance(column, Column) or not isinstance(text, SparkLiteral):
        return None
    if not isinstance(text.value, str) or not is_text(column.dtype):
        return None
    return TextMatch(column=column, test=test, text=text.value)


def _membership(operands: Sequence[Operand]) -> Condition | None:
    column, *literals = operands
    if not isinstance(column, Column) or not literals:
        return None
    given = [literal.value for literal in literals if isinstance(literal, SparkLiteral)]
    present = [value for value in given if value is not None]
    values = [typed_value(value, column.dtype) for value in present]
    if len(given) < len(literals) or any(value is None for value in values):
        return None
    has_null = len(present) < len(given)
    numbers = [value for value in values if value is not None and not _is_nan(value)]
    parts: list[Condition] = [IsNan(column=column)] if len(numbers) < len(values) else []
    if numbers:
        array = pa.array(numbers, column.dtype).unique()
        parts.append(Membership(column=column, values=array, has_null=has_null))
    elif has_null:
        parts.append(Constant(truth=None))
    return any_of(parts)


def _comparison(name: str, left: Operand, right: Operand) -> Condition | None:
    if isinstance(left, Column) and isinstance(right, Column):
        return _of_columns(name, left, right)
    if isinstance(left, SparkLiteral) and isinstance(right, Column):
        mirrored = name if name == _NULL_SAFE else _OPERATORS[name].mirrored.value
        return _comparison(mirrored, right, left)
    if not isinstance(left, Column) or not isinstance(right, SparkLiteral):
        return None
    if right.value is None:
        return IsNull(column=left) if name == _NULL_SAFE else Constant(truth=None)
    value = typed_value(right.value, left.dtype)
    if value is None:
        return None
    if name == _NULL_SAFE:
        equal = _compare(left, Operator.EQUAL, value)
        return all_of([negated(IsNull(column=left)), equal])
    return _compare(left, _OPERATORS[name], value)


def _compare(column: Column, operator: Operator, value: pa.Scalar) -> Condition:
    comparison = Comparison(column=column, operator=operator, value=value)
    if not is_float(column.dtype):
        return comparison
    is_nan = IsNan(column=column)
    upward = operator in (Operator.GREATER, Operator.GREATER_EQUAL)
    downward = operator in (Operator.LESS, Operator.LESS_EQUAL)
    if not _is_nan(value):
        if upward:
            return any_of([comparison, is_nan])
        return all_of([comparison, negated(is_nan)]) if downward else comparison
    match operator:
        case Operator.EQUAL | Operator.GREATER_EQUAL:
            return is_nan
        case Operator.NOT_EQUAL | Operator.LESS:
            return negated(is_nan)
        case Operator.LESS_EQUAL:
            return any_of([is_nan, negated(is_nan)])
        case Operator.GREATER:
            return all_of([is_nan, negated(is_nan)])
        case _:
            assert_never(operator)


def _is_nan(value: pa.Scalar) -> bool:
    return is_float(value.type) and math.isnan(value.as_py())


def _of_columns(name: str, left: Column, right: Column) -> Condition | None:
    if left.dtype != right.dtype or not _compares_exactly(left.dtype):
        return None
    if name != _NULL_SAFE:
        return ColumnComparison(left=left, operator=_OPERATORS[name], right=right)
    nulls = [IsNull(column=left), IsNull(column=right)]
    equal = ColumnComparison(left=left, operator=Operator.EQUAL, right=right)
    return any_of([all_of(nulls), all_of([*map(negated, nulls), equal])])


def _compares_exactly(dtype: pa.DataType) -> bool:
    if pa.types.is_timestamp(dtype):
        return bool(dtype.unit == "us")
    is_number = pa.types.is_signed_integer(dtype) or pa.types.is_decimal128(dtype)
    is_bytes = is_text(dtype) or is_binary(dtype)
    return bool(is_number or is_bytes or pa.types.is_boolean(dtype) or pa.types.is_date32(dtype))


@dataclass(frozen=True, slots=True)
class JavaExpressions:
    """Converts expressions on the columns of one table."""

    gateway: Gateway
    type_of: TypeOf

    def condition(self, predicate: Any) -> Condition | None:
        """Convert a condition; None if part of it is not supported."""
        return self._condition(describe_one(self.gateway, predicate))

    def conditions(self, predicates: Any, most: int | None = None) -> list[Condition | None]:
        """Convert an array of conditions, those with more than `most` children to None."""
        return [self._condition(each) for each in describe(self.gateway, predicates, most)]

    def column(self, reference: Any) -> Column | None:
        """Convert a reference to a column."""
        if str(reference.getClass().getSimpleName()) != "FieldReference":
            return None
        text = str(reference.toString())
        # Text is one call, an array one for each name; only a name without signs is as it is shown.
        path = (text,) if text.isidentifier() else tuple(reference.fieldNames())
        return self._column(path)

    def _column(self, path: tuple[str, ...]) -> Column | None:
        dtype = self.type_of(path)
        return None if dtype is None else Column(path=path, dtype=dtype)

    def _condition(self, description: Any) -> Condition | None:
        kind, *rest = description
        if kind != "condition":
            return None
        name, children = rest
        converted = [self._operand(child) for child in children]
        operands = [operand for operand in converted if operand is not None]
        return spark_condition(name, operands) if len(operands) == len(converted) else None

    def _operand(self, description: Any) -> Operand | None:
        """Convert a column, a literal or a condition as Java describes it."""
        if not isinstance(description, tuple):
            return SparkLiteral(
                value=bytes(description) if isinstance(description, bytearray) else description
            )
        kind, *rest = description
        match kind:
            case "column":
                return self._column(tuple(rest[0]))
            case "float":
                return SparkLiteral(value=float(rest[0]))
            case "decimal":
                return SparkLiteral(value=Decimal(rest[0]))
            case _:
                return self._condition(description)
