"""A condition as Spark states it -> SQL of our own with exactly the same meaning, or nothing.

What is not certain to mean the same stays in Spark. To Spark, not a number equals itself and is
larger than any number, and the two zeros are equal; DataFusion orders floating-point numbers by
their bits, so conditions on them are spelled out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

Value = bool | int | float | str | bytes | Decimal | None

_EPOCH_DAY_LIMITS = (-719162, 2932896)  # the years 1 to 9999
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = {"STARTS_WITH": "starts_with", "ENDS_WITH": "ends_with", "CONTAINS": "contains"}
_MAX_VALUES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its path, and its type in the table."""

    path: tuple[str, ...]
    dtype: pa.DataType

    @property
    def sql(self) -> str | None:
        """The column in SQL; None when its name cannot be written."""
        if any(mark in name for name in self.path for mark in '`"'):
            return None
        return ".".join(f"`{name}`" for name in self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A value, as Spark keeps it: days for dates, microseconds for times."""

    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A test of columns and constants, or a combination of conditions."""

    name: str
    operands: tuple[Any, ...]


Node = Column | Constant | Condition


def to_sql(node: Node | None) -> str | None:
    """Return the condition in SQL; None when that might change its meaning."""
    if not isinstance(node, Condition):
        return None
    match node.name:
        case "AND" | "OR":
            parts = [to_sql(part) for part in node.operands]
            known = [part for part in parts if part is not None]
            return f"({f' {node.name} '.join(known)})" if len(known) == len(parts) else None
        case "NOT":
            part = to_sql(node.operands[0])
            return None if part is None else f"(NOT {part})"
        case "ALWAYS_TRUE":
            return "(1 = 1)"
        case "ALWAYS_FALSE":
            return "(1 = 0)"
        case "IS_NULL" | "IS_NOT_NULL":
            return _null_test(node)
        case "IN":
            return _membership(node)
        case name if name in _TEXT_TESTS:
            return _text_test(node)
        case name if name in _COMPARISONS:
            return _comparison(node)
        case _:
            return None


def literal(value: Value, dtype: pa.DataType) -> str | None:
    """Return a constant in SQL, to be compared with a column of this type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower() if pa.types.is_boolean(dtype) else None
    if isinstance(value, int):
        return _whole(value, dtype)
    if isinstance(value, float):
        return _floating(value, dtype)
    if isinstance(value, str):
        is_text = dtype in (pa.string(), pa.large_string())
        return "'" + value.replace("'", "''") + "'" if is_text and "\0" not in value else None
    if isinstance(value, bytes | bytearray):
        is_binary = dtype in (pa.binary(), pa.large_binary())
        return f"X'{bytes(value).hex()}'" if is_binary else None
    if not pa.types.is_decimal128(dtype) or -value.as_tuple().exponent > dtype.scale:  # type: ignore[operator]
        return None
    return f"CAST('{value:f}' AS DECIMAL({dtype.precision},{dtype.scale}))"


def _whole(value: int, dtype: pa.DataType) -> str | None:
    if pa.types.is_integer(dtype):
        # Of unsigned 64-bit columns Spark sees decimals.
        return None if pa.types.is_uint64(dtype) and value < 0 else str(value)
    if pa.types.is_date32(dtype):
        low, high = _EPOCH_DAY_LIMITS
        return f"arrow_cast({value}, 'Date32')" if low <= value <= high else None
    if pa.types.is_timestamp(dtype) and dtype.unit == "us":
        zone = "None" if dtype.tz is None else f'Some("{dtype.tz}")'
        return f"arrow_cast({value}, 'Timestamp(Microsecond, {zone})')"
    return None


def _floating(value: float, dtype: pa.DataType) -> str | None:
    if not math.isfinite(value):
        return None
    if pa.types.is_float64(dtype):
        return f"CAST('{value!r}' AS DOUBLE)"
    return f"CAST('{value!r}' AS FLOAT)" if pa.types.is_float32(dtype) else None


def _null_test(node: Condition) -> str | None:
    (operand,) = node.operands
    if not isinstance(operand, Column) or operand.sql is None:
        return None
    return f"({operand.sql} {node.name.replace('_', ' ')})"


def _text_test(node: Condition) -> str | None:
    column, constant = node.operands
    if not isinstance(column, Column) or not isinstance(constant, Constant):
        return None
    if not isinstance(constant.value, str) or column.sql is None:
        return None
    text = literal(constant.value, column.dtype)
    return None if text is None else f"{_TEXT_TESTS[node.name]}({column.sql}, {text})"


def _membership(node: Condition) -> str | None:
    column, *constants = node.operands
    if not isinstance(column, Column) or column.sql is None or len(constants) > _MAX_VALUES:
        return None
    if pa.types.is_floating(column.dtype) or not constants:
        return None
    values = [literal(c.value, column.dtype) for c in constants if isinstance(c, Constant)]
    known = [value for value in values if value is not None]
    if len(known) < len(constants):
        return None
    return f"({column.sql} IN ({', '.join(known)}))"


def _comparison(node: Condition) -> str | None:
    left, right = node.operands
    if isinstance(left, Constant) and isinstance(right, Column):
        name = _MIRRORED.get(node.name, node.name)
        return _comparison(Condition(name=name, operands=(right, left)))
    if isinstance(left, Column) and isinstance(right, Column):
        return _of_columns(node.name, left, right)
    if not isinstance(left, Column) or not isinstance(right, Constant) or left.sql is None:
        return None
    constant = literal(right.value, left.dtype)
    if constant is None:
        return None
    if node.name == "<=>":
        return _null_safe(left, right, constant)
    if pa.types.is_floating(left.dtype):
        return _of_floats(node.name, left.sql, right.value, left.dtype)
    return f"({left.sql} {node.name} {constant})"


def _null_safe(column: Column, constant: Constant, text: str) -> str | None:
    if pa.types.is_floating(column.dtype) and constant.value is not None:
        return None
    return f"({column.sql} IS NOT DISTINCT FROM {text})"


def _of_columns(name: str, left: Column, right: Column) -> str | None:
    comparable = _compares_exactly(left.dtype) and left.dtype == right.dtype
    if not comparable or left.sql is None or right.sql is None:
        return None
    operator = "IS NOT DISTINCT FROM" if name == "<=>" else name
    return f"({left.sql} {operator} {right.sql})"


def _compares_exactly(dtype: pa.DataType) -> bool:
    if pa.types.is_timestamp(dtype):
        return bool(dtype.unit == "us")
    exact = pa.types.is_signed_integer(dtype) or pa.types.is_decimal128(dtype)
    text = dtype in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return bool(exact or text or pa.types.is_boolean(dtype) or pa.types.is_date32(dtype))


def _of_floats(name: str, column: str, value: Value, dtype: pa.DataType) -> str | None:
    """Compare with a number as Spark does."""
    if not isinstance(value, float):
        return None
    positive, negative = literal(abs(value), dtype), literal(-abs(value), dtype)
    constant = literal(value, dtype)
    if value == 0:
        equal = f"({column} = {positive} OR {column} = {negative})"
    else:
        equal = f"({column} = {constant})"
    low = negative if value == 0 else constant
    high = positive if value == 0 else constant
    match name:
        case "=":
            return equal
        case "<>":
            return f"(NOT {equal})"
        case "<":
            return f"({column} < {low} AND NOT isnan({column}))"
        case "<=":
            return f"({column} <= {high} AND NOT isnan({column}))"
        case ">":
            return f"({column} > {high} OR isnan({column}))"
        case ">=":
            return f"({column} >= {low} OR isnan({column}))"
        case _:
            return None


def joined(conditions: Sequence[str]) -> str | None:
    """Return one condition that holds where all of them hold."""
    return " AND ".join(conditions) if conditions else None
