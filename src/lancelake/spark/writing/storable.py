"""Spark's store assignment rules, implemented without its classes.

Spark itself decides wherever its classes are available. On Spark Connect and in the processes of
plain data sources they are not.
"""

from __future__ import annotations

from enum import Enum

from pyspark.sql import types as t

from lancelake.errors import SchemaMismatchError

_NUMBERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType)
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)
_TEXTS = (t.StringType, t.CharType, t.VarcharType)


class Rule(Enum):
    """Allowed conversions."""

    NUMBERS = "numbers"
    """Numbers only: other conversions depend on the session, such as its time zone."""

    ANSI = "ansi"
    STRICT = "strict"


def ensure_storable(data: t.StructField, table: t.StructField, rule: Rule) -> None:
    """Refuse values that the writer must cast explicitly."""
    if not _storable(data.dataType, table.dataType, rule):
        found, wanted = data.dataType.simpleString(), table.dataType.simpleString()
        raise SchemaMismatchError(
            f"column {table.name} of type {wanted} does not accept values of type {found}",
            path=table.name,
            expected=wanted,
            found=found,
            action="Cast the column before writing it.",
        )


def _storable(data: t.DataType, table: t.DataType, rule: Rule) -> bool:
    if isinstance(data, t.UserDefinedType):
        return _storable(data.sqlType(), table, rule)
    if isinstance(data, t.NullType) or data == table:
        return True
    match data, table:
        case t.StructType(), t.StructType():
            by_name = {field.name.lower(): field.dataType for field in table.fields}
            pairs = [(f.dataType, by_name.get(f.name.lower())) for f in data.fields]
            # Fields that the table lacks are refused by name elsewhere.
            return all(b is None or _storable(a, b, rule) for a, b in pairs)
        case t.ArrayType(), t.ArrayType():
            return _storable(data.elementType, table.elementType, rule)
        case t.MapType(), t.MapType():
            keys = _storable(data.keyType, table.keyType, rule)
            return keys and _storable(data.valueType, table.valueType, rule)
        case _:
            return _atomic(data, table, rule)


def _atomic(data: t.DataType, table: t.DataType, rule: Rule) -> bool:
    if isinstance(data, _TEXTS) and isinstance(table, _TEXTS):
        return True
    is_number = isinstance(data, t.NumericType) and isinstance(table, t.NumericType)
    if is_number:
        return rule is not Rule.STRICT or _widens(data, table)
    if isinstance(data, t.DayTimeIntervalType) and isinstance(table, t.DayTimeIntervalType):
        return True
    if rule is Rule.NUMBERS:
        return False
    if isinstance(table, _TEXTS):
        return isinstance(data, t.AtomicType) and not isinstance(data, t.BinaryType)
    is_time = isinstance(data, _TIMES) and isinstance(table, _TIMES)
    return is_time and (rule is not Rule.STRICT or isinstance(data, t.DateType))


def _widens(data: t.DataType, table: t.DataType) -> bool:
    """Whether every value of a number type is a value of another, as in Spark's upcasts."""
    if isinstance(data, t.DecimalType):
        whole = table.precision - table.scale if isinstance(table, t.DecimalType) else -1
        is_wide = isinstance(table, t.DecimalType) and table.scale >= data.scale
        return is_wide and whole >= data.precision - data.scale
    if isinstance(table, t.DecimalType):
        digits: dict[type[t.DataType], int] = {
            t.ByteType: 3,
            t.ShortType: 5,
            t.IntegerType: 10,
            t.LongType: 20,
        }
        return table.precision - table.scale >= digits.get(type(data), 99)
    return _NUMBERS.index(type(data)) <= _NUMBERS.index(type(table))
