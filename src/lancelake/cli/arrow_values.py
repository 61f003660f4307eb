"""Format Arrow values as table cells."""

from __future__ import annotations

import pyarrow as pa
from rich.text import Text

from lancelake.cli.words import printable, shortened, size
from lancelake.table.describe.arrow_json import is_bytes, is_number, opened, shown

_TEXT_MOST = 200
_NESTED_MOST = 100
_HEX_BYTES = 8
_FIRST_ITEMS = 4
_FIRST_VECTOR_ITEMS = 3
_FIRST_MEMBERS = 6
_DIGITS = 5


def to_cell(value: pa.Scalar) -> Text:
    """Return a value as a short line: bytes as hex and length, lists by their first items."""
    value = opened(value)
    if not value.is_valid:
        return Text("null", style="dim")
    if is_bytes(value.type):
        return _bytes_cell(value)
    if pa.types.is_fixed_size_list(value.type) and is_number(value.type.value_type):
        return _vector_cell(value)
    if pa.types.is_nested(value.type):
        return Text(shortened(_nested(value), _NESTED_MOST))
    return Text(shortened(printable(shown(value)), _TEXT_MOST))


def is_right_aligned(dtype: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return is_number(dtype) or bool(pa.types.is_decimal(dtype))


def _bytes_cell(value: pa.Scalar) -> Text:
    data = value.as_py()
    more = "…" if len(data) > _HEX_BYTES else ""
    return Text.assemble(data[:_HEX_BYTES].hex(), more, (f" {size(len(data))}", "dim"))


def _vector_cell(value: pa.Scalar) -> Text:
    items = value.values
    first = ", ".join(_short(opened(item)) for item in items[:_FIRST_VECTOR_ITEMS])
    more = ", …" if len(items) > _FIRST_VECTOR_ITEMS else ""
    return Text.assemble(f"[{first}{more}]", (f" {len(items)}d", "dim"))


def _nested(value: pa.Scalar) -> str:
    """Return a nested value, limited to its first items."""
    value = opened(value)
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
    if is_bytes(dtype):
        return _bytes_cell(value).plain
    text = printable(shown(value))
    is_text = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return f'"{text}"' if is_text else text


def _short(value: pa.Scalar) -> str:
    """Return an element of a vector with few digits."""
    if not value.is_valid:
        return "null"
    plain = value.as_py()
    return f"{plain:.{_DIGITS}g}" if isinstance(plain, float) else str(plain)
