"""Format Arrow values as JSON and as table cells."""

from __future__ import annotations

import base64
import math
from typing import Any

import pyarrow as pa
from rich.text import Text

from lancelake.cli.words import printable, shortened, size

Json = Any  # what the json module takes

_TEXT_MOST = 200
_NESTED_MOST = 100
_HEX_BYTES = 8
_FIRST_ITEMS = 4
_FIRST_VECTOR_ITEMS = 3
_FIRST_MEMBERS = 6
_DIGITS = 5
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def to_json(value: pa.Scalar) -> Json:
    """Return a JSON-compatible value: bytes as base64, times as ISO 8601, decimals as text.

    A map becomes a list of objects with `key` and `value`; NaN and infinities become text.
    """
    value = _opened(value)
    dtype = value.type
    if not value.is_valid:
        return None
    if pa.types.is_struct(dtype):
        return {dtype.field(i).name: to_json(value[i]) for i in range(dtype.num_fields)}
    if pa.types.is_map(dtype):
        return [{"key": to_json(e[0]), "value": to_json(e[1])} for e in value.values]
    if pa.types.is_nested(dtype):
        return [to_json(item) for item in value.values]
    if _is_bytes(dtype):
        return base64.b64encode(value.as_py()).decode()
    plain = _leaf(value)
    if isinstance(plain, float) and not math.isfinite(plain):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(plain, "NaN")
    return plain


def to_cell(value: pa.Scalar) -> Text:
    """Return a value as a short line: bytes as hex and length, lists by their first items."""
    value = _opened(value)
    if not value.is_valid:
        return Text("null", style="dim")
    if _is_bytes(value.type):
        return _bytes_cell(value)
    if pa.types.is_fixed_size_list(value.type) and _is_number(value.type.value_type):
        return _vector_cell(value)
    if pa.types.is_nested(value.type):
        return Text(shortened(_nested(value), _NESTED_MOST))
    return Text(shortened(printable(_shown(_leaf(value))), _TEXT_MOST))


def is_right_aligned(dtype: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return _is_number(dtype) or bool(pa.types.is_decimal(dtype))


def _bytes_cell(value: pa.Scalar) -> Text:
    data = value.as_py()
    more = "…" if len(data) > _HEX_BYTES else ""
    return Text.assemble(data[:_HEX_BYTES].hex(), more, (f" {size(len(data))}", "dim"))


def _vector_cell(value: pa.Scalar) -> Text:
    items = value.values
    first = ", ".join(_nested(item) for item in items[:_FIRST_VECTOR_ITEMS])
    more = ", …" if len(items) > _FIRST_VECTOR_ITEMS else ""
    return Text.assemble(f"[{first}{more}]", (f" {len(items)}d", "dim"))


def _nested(value: pa.Scalar) -> str:
    """Return a nested value, limited to its first items."""
    value = _opened(value)
    dtype = value.type
    if not value.is_valid:
        return "null"
    if pa.types.is_struct(dtype):
        members = [(dtype.field(i).name, i) for i in range(min(dtype.num_fields, _FIRST_MEMBERS))]
        parts = [f"{printable(name)}: {_nested(value[i])}" for name, i in members]
        return "{" + ", ".join(parts + ["…"] * (dtype.num_fields > _FIRST_MEMBERS)) + "}"
    if pa.types.is_map(dtype):
        entries = value.values
        parts = [f"{_nested(e[0])}: {_nested(e[1])}" for e in entries[:_FIRST_ITEMS]]
        return "{" + ", ".join(parts + ["…"] * (len(entries) > _FIRST_ITEMS)) + "}"
    if pa.types.is_nested(dtype):
        items = value.values
        parts = [_nested(item) for item in items[:_FIRST_ITEMS]]
        return "[" + ", ".join(parts + [f"… {len(items)}"] * (len(items) > _FIRST_ITEMS)) + "]"
    if _is_bytes(dtype):
        return _bytes_cell(value).plain
    text = printable(_shown(_leaf(value)))
    is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return f'"{text}"' if is_text else text


def _opened(value: pa.Scalar) -> pa.Scalar:
    """Return the storage or value type of extension and dictionary types."""
    while isinstance(value, pa.ExtensionScalar | pa.DictionaryScalar):
        storage = value.value
        if storage is None:
            return pa.scalar(None)
        value = storage
    return value


def _leaf(value: pa.Scalar) -> bool | int | float | str:
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


def _shown(plain: bool | float | str) -> str:
    if isinstance(plain, bool):
        return str(plain).lower()
    return f"{plain:.{_DIGITS}g}" if isinstance(plain, float) else str(plain)


def _is_bytes(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_fixed_size_binary(dtype)
    )


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_integer(dtype) or pa.types.is_floating(dtype))
