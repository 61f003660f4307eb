"""Formatting of values in index statistics, as in official releases."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from lancelake.expr.literals import is_binary

_SHOWN_BYTES = 10


def shown_value(value: pa.Scalar) -> str:
    """Return the text of a value."""
    dtype = value.type
    if not value.is_valid:
        return "NULL"
    if pa.types.is_boolean(dtype):
        return str(value.as_py()).lower()
    if pa.types.is_floating(dtype):
        return _number(float(value.as_py()), dtype)
    if is_binary(dtype) or pa.types.is_fixed_size_binary(dtype):
        data: bytes = value.as_py()
        more = "..." if len(data) > _SHOWN_BYTES else ""
        return data[:_SHOWN_BYTES].hex().upper() + more
    if pa.types.is_decimal(dtype):
        digits = int(value.as_py().scaleb(dtype.scale))
        return f"Some({digits}),{dtype.precision},{dtype.scale}"
    if pa.types.is_date(dtype):
        return _day(value)
    is_raw = pa.types.is_temporal(dtype)
    return str(value.value if is_raw else value.as_py())


def _number(number: float, dtype: pa.DataType) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else str(number)
    exact = np.float64(number) if pa.types.is_float64(dtype) else np.float32(number)
    return np.format_float_positional(exact, unique=True, trim="-")


def _day(value: pa.Scalar) -> str:
    try:
        return str(value.as_py())
    except (OverflowError, ValueError):
        return str(value.value)  # past the calendar of Python
