"""Arrow values as JSON: exact, with a form for every type."""

from __future__ import annotations

import base64
import math
from typing import Any

import pyarrow as pa

Json = Any  # what the json module takes

_HALF_DIGITS = 4
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def to_json(value: pa.Scalar, most_items: int | None = None) -> Json:
    """Return a JSON-compatible value: bytes as base64, times as ISO 8601, decimals as text.

    A map becomes a list of objects with `key` and `value`; NaN and infinities become text. A list
    of more than `most_items` items ends with a text that counts the others.
    """
    value = opened(value)
    dtype = value.type
    if not value.is_valid:
        return None
    if pa.types.is_struct(dtype):
        members = ((dtype.field(i).name, value[i]) for i in range(dtype.num_fields))
        return {name: to_json(member, most_items) for name, member in members}
    if pa.types.is_nested(dtype):
        return _items(value, most_items)
    if is_bytes(dtype):
        return base64.b64encode(value.as_py()).decode()
    plain = leaf(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(plain, "NaN")
    return plain


def _items(value: pa.Scalar, most: int | None) -> list[Json]:
    items = value.values
    kept = items if most is None else items[:most]
    found: list[Json]
    if pa.types.is_map(value.type):
        found = [{"key": to_json(e[0], most), "value": to_json(e[1], most)} for e in kept]
    else:
        found = [to_json(item, most) for item in kept]
    if len(kept) < len(items):
        found.append(f"… {len(items) - len(kept):,} more")
    return found


def opened(value: pa.Scalar) -> pa.Scalar:
    """Return the storage or value type of extension and dictionary types."""
    while isinstance(value, pa.ExtensionScalar | pa.DictionaryScalar):
        storage = value.value
        if storage is None:
            return pa.scalar(None)
        value = storage
    return value


def leaf(value: pa.Scalar) -> bool | int | float | str:
    """Return a value that is not null, nested or bytes: times and decimals as text."""
    dtype = value.type
    if pa.types.is_duration(dtype):
        return f"PT{_decimal(value.value, _PER_SECOND[dtype.unit])}S"
    if pa.types.is_timestamp(dtype):
        return _timestamp(value.cast(pa.string()).as_py())
    if pa.types.is_temporal(dtype):
        return str(value.cast(pa.string()).as_py())
    if pa.types.is_decimal(dtype):
        return str(value.as_py())
    plain: bool | int | float | str = value.as_py()
    return plain


def shown(value: pa.Scalar) -> str:
    """Return a value with all its digits, and no more than its type has."""
    dtype = value.type
    if pa.types.is_float32(dtype):
        text = str(value.cast(pa.string()).as_py())
        return f"{text}.0" if text.lstrip("-").isdigit() else text
    if pa.types.is_float16(dtype):
        return f"{value.as_py():.{_HALF_DIGITS}g}"
    plain = leaf(value)
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


def is_bytes(dtype: pa.DataType) -> bool:
    """Whether values of this type are bytes."""
    types = pa.types
    return bool(
        types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype)
    )


def is_number(dtype: pa.DataType) -> bool:
    """Whether values of this type are integers or floating-point numbers."""
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))


def _timestamp(text: str) -> str:
    """Convert Arrow's time format to ISO 8601."""
    date, _, rest = text.partition(" ")
    zone = rest[-5:]
    if zone[:1] in ("+", "-"):
        rest = f"{rest[:-5]}{zone[:3]}:{zone[3:]}"
    return f"{date}T{rest}"


def _decimal(count: int, per_second: int) -> str:
    sign = "-" if count < 0 else ""
    whole, rest = divmod(abs(count), per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{sign}{whole}{fraction}"
