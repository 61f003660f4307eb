"""Constants of SQL as Arrow values, and values at a path of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Literal: TypeAlias = bool | int | float | str | pa.Scalar
"""A constant: a number, a text or a truth of Python, or a value of another type, or null."""

_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def is_text(dtype: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _is_text_or_view(dtype: pa.DataType) -> bool:
    return is_text(dtype) or bool(pa.types.is_string_view(dtype))


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


def literal(value: pa.Scalar) -> Literal:
    """Return a number, a text or a truth as Python has it, other constants unchanged."""
    dtype = value.type
    if not value.is_valid:
        return value
    if pa.types.is_floating(dtype):
        return float(value.as_py())
    is_plain = pa.types.is_integer(dtype) or pa.types.is_boolean(dtype) or _is_text_or_view(dtype)
    return value.as_py() if is_plain else value


def typed(value: Literal, dtype: pa.DataType) -> pa.Scalar | None:
    """Return a constant as a value of a column's type; None where it is of another kind.

    A number takes the type of the column that it meets, unless that changes an integer.
    """
    if isinstance(value, pa.Scalar):
        value = literal(value)
    if not is_comparable(dtype):
        return None
    if isinstance(value, pa.Scalar):
        return _typed_scalar(value, dtype)
    kind = type(value)
    if is_float(dtype) and kind in (int, float):
        return pa.scalar(float(value), dtype)
    if kind is int and (pa.types.is_integer(dtype) or _is_decimal(dtype)):
        if not fits(int(value), dtype):
            return None
        return pa.scalar(value if pa.types.is_integer(dtype) else Decimal(value), dtype)
    is_alike = (kind is str and is_text(dtype)) or (kind is bool and pa.types.is_boolean(dtype))
    return pa.scalar(value, dtype) if is_alike else None


def _typed_scalar(value: pa.Scalar, dtype: pa.DataType) -> pa.Scalar | None:
    if not value.is_valid:
        return None
    if value.type == dtype:
        return value
    if pa.types.is_timestamp(dtype) and pa.types.is_timestamp(value.type):
        return _exact_time(value, dtype)
    is_bytes = is_binary(value.type) or pa.types.is_binary_view(value.type)
    return pa.scalar(value.as_py(), dtype) if is_bytes and is_binary(dtype) else None


def typed_array(values: Sequence[Literal], dtype: pa.DataType) -> pa.Array | None:
    """Return constants as values of a column's type, each once; None where one is of another kind.

    Long lists of one kind are converted at once.
    """
    kinds = set(map(type, values))
    if is_float(dtype) and kinds <= {int, float}:
        return pa.array(map(float, values), dtype).unique()
    if pa.types.is_integer(dtype) and kinds == {int}:
        low, high = min(values), max(values)
        fitting = fits(int(low), dtype) and fits(int(high), dtype)
        return pa.array(values, dtype).unique() if fitting else None
    if is_text(dtype) and kinds == {str}:
        return pa.array(values, dtype).unique()
    elements = [typed(value, dtype) for value in values]
    is_alike = all(element is not None for element in elements)
    return pa.array(elements, dtype).unique() if is_alike else None


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
    if _is_text_or_view(dtype):
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


def at_path(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """Return the value at a path; null where a parent struct is null."""
    array = batch.column(path[0])
    for segment in path[1:]:
        array = pc.struct_field(array, segment)
    return array


def type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """Return the type at a path of structs, without its extension; None where there is none."""
    place = schema.get_field_index(path[0])
    if place < 0:
        return None
    dtype = schema.field(place).type
    for name in path[1:]:
        member = dtype.get_field_index(name) if pa.types.is_struct(dtype) else -1
        if member < 0:
            return None
        dtype = dtype.field(member).type
    return plain_type(dtype)


def may_be_null(schema: pa.Schema, path: Sequence[str]) -> bool:
    """Whether a value or one of its parents can be null."""
    if not path:
        return True
    field = schema.field(path[0])
    nullable = bool(field.nullable)
    for segment in path[1:]:
        field = field.type.field(segment)
        nullable = nullable or bool(field.nullable)
    return nullable


def plain_storage(array: pa.Array) -> pa.Array:
    """Return the storage array of an extension array."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array


def plain_type(dtype: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type, other types unchanged."""
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def without_views(array: pa.Array) -> pa.Array:
    """Return strings and binaries in the layout that tables use."""
    target = type_without_views(array.type)
    return array if target.equals(array.type) else array.cast(target)


def type_without_views(dtype: pa.DataType) -> pa.DataType:
    """Return the layout that tables use for strings and binaries."""
    if pa.types.is_string_view(dtype):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(dtype) else dtype
