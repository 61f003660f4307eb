"""Literals of expressions: conversion to a column's type and to SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def is_text(dtype: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def is_binary(dtype: pa.DataType) -> bool:
    """Whether a type is one of bytes of any length."""
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype))


def is_float(dtype: pa.DataType) -> bool:
    """Whether Arrow compares numbers of a floating-point type."""
    return bool(pa.types.is_float32(dtype) or pa.types.is_float64(dtype))


def _is_decimal(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_decimal128(dtype) or pa.types.is_decimal256(dtype))


def is_comparable(dtype: pa.DataType) -> bool:
    """Whether Arrow compares values of a type just as DataFusion does."""
    return (
        is_text(dtype)
        or is_binary(dtype)
        or is_float(dtype)
        or bool(
            pa.types.is_integer(dtype)
            or pa.types.is_boolean(dtype)
            or pa.types.is_date(dtype)
            or pa.types.is_timestamp(dtype)
            or pa.types.is_duration(dtype)
            or pa.types.is_fixed_size_binary(dtype)
            or (_is_decimal(dtype) and dtype.scale >= 0)
        )
    )


def typed(value: pa.Scalar, dtype: pa.DataType) -> pa.Scalar | None:
    """Return a constant as a value of a column's type; None where it is of another kind.

    A number takes the type of the column that it meets, unless that changes an integer.
    """
    if not value.is_valid or not is_comparable(dtype):
        return None
    if value.type == dtype:
        return value
    is_whole = pa.types.is_integer(value.type)
    if is_float(dtype) and (is_whole or is_float(value.type)):
        return pa.scalar(float(value.as_py()), dtype)
    if is_whole and (pa.types.is_integer(dtype) or _is_decimal(dtype)):
        number = value.as_py()
        if not fits(number, dtype):
            return None
        return pa.scalar(number if pa.types.is_integer(dtype) else Decimal(number), dtype)
    if pa.types.is_timestamp(dtype) and pa.types.is_timestamp(value.type):
        return _exact_time(value, dtype)
    is_alike = (
        is_text(dtype) and (is_text(value.type) or pa.types.is_string_view(value.type))
    ) or (is_binary(dtype) and (is_binary(value.type) or pa.types.is_binary_view(value.type)))
    return pa.scalar(value.as_py(), dtype) if is_alike else None


def typed_array(values: Sequence[object], dtype: pa.DataType) -> pa.Array | None:
    """Return constants of one kind as values of a column's type, each once."""
    kinds = set(map(type, values))
    if is_float(dtype) and kinds <= {int, float}:
        return pa.array(map(float, values), dtype).unique()  # type: ignore[arg-type]
    if pa.types.is_integer(dtype) and kinds == {int}:
        low, high = min(values), max(values)  # type: ignore[type-var]
        fitting = fits(int(low), dtype) and fits(int(high), dtype)  # type: ignore[call-overload]
        return pa.array(values, dtype).unique() if fitting else None
    is_alike = (is_text(dtype) and kinds == {str}) or (
        pa.types.is_boolean(dtype) and kinds == {bool}
    )
    return pa.array(values, dtype).unique() if is_alike else None


def _exact_time(value: pa.Scalar, dtype: pa.DataType) -> pa.Scalar | None:
    """Return a time in another unit, if it is the same time there."""
    if (value.type.tz is None) != (dtype.tz is None):
        return None
    try:
        return value.cast(dtype)
    except pa.ArrowInvalid:
        return None


def fits(number: int, target: pa.DataType) -> bool:
    """Whether a type of integers or decimals has a value for a number."""
    if pa.types.is_decimal(target):
        return bool(abs(number) < 10 ** (target.precision - target.scale))
    low = -(1 << (target.bit_width - 1)) if pa.types.is_signed_integer(target) else 0
    return bool(low <= number < low + (1 << target.bit_width))


def to_sql(value: pa.Scalar) -> str | None:
    """Return a constant in DataFusion's SQL; None for types that it cannot state."""
    dtype = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(dtype):
        return str(value.as_py()).lower()
    if pa.types.is_integer(dtype):
        return str(value.as_py())
    if pa.types.is_floating(dtype):
        return _float_sql(float(value.as_py()), dtype)
    if is_text(dtype) or pa.types.is_string_view(dtype):
        return quoted(value.as_py())
    if is_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        return f"X'{value.as_py().hex()}'"
    return _cast_sql(value)


def quoted(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def _float_sql(number: float, dtype: pa.DataType) -> str:
    name = "DOUBLE" if pa.types.is_float64(dtype) else "FLOAT"
    if math.isfinite(number) and pa.types.is_float64(dtype):
        return repr(number)
    return f"CAST('{number!r}' AS {name})"


def _cast_sql(value: pa.Scalar) -> str | None:
    name = type_name(value.type)
    if name is None:
        return None
    if pa.types.is_decimal(value.type):
        return f"arrow_cast('{value.as_py():f}', '{name}')"
    return f"arrow_cast({value.value}, '{name}')"


def type_name(dtype: pa.DataType) -> str | None:
    """Return the name of a type for DataFusion's `arrow_cast`; None for nested ones."""
    if pa.types.is_timestamp(dtype):
        zone = "None" if dtype.tz is None else f'Some("{dtype.tz}")'
        return f"Timestamp({_UNITS[dtype.unit]}, {zone})"
    if pa.types.is_duration(dtype):
        return f"Duration({_UNITS[dtype.unit]})"
    if pa.types.is_time(dtype):
        return f"Time{dtype.bit_width}({_UNITS[dtype.unit]})"
    if pa.types.is_decimal128(dtype) or pa.types.is_decimal256(dtype):
        return f"Decimal{dtype.bit_width}({dtype.precision}, {dtype.scale})"
    return _PLAIN_NAMES.get(dtype)


_PLAIN_NAMES = {
    pa.bool_(): "Boolean",
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint8(): "UInt8",
    pa.uint16(): "UInt16",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float16(): "Float16",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.string(): "Utf8",
    pa.large_string(): "LargeUtf8",
    pa.binary(): "Binary",
    pa.large_binary(): "LargeBinary",
    pa.date32(): "Date32",
    pa.date64(): "Date64",
}
