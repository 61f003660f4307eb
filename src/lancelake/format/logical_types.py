"""Conversion between logical type strings of the format and Arrow types."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lancelake.errors import CorruptTableError, LanceTableError, UnsupportedError
from lancelake.format.extension_names import BFLOAT16, EXTENSION_METADATA, EXTENSION_NAME

_BFLOAT16_STORAGE = pa.binary(2)

_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "blob": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
}
_SIMPLE |= {f"duration:{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")}
_SIMPLE_NAMES = {t: name for name, t in _SIMPLE.items() if name not in ("blob", "json")}
_SIMPLE_NAMES |= {pa.string_view(): "string", pa.binary_view(): "binary"}

_LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})
_MAX_NESTING = 32


def to_arrow(logical_type: str, children: Sequence[pa.Field] = ()) -> pa.DataType:
    """Return the Arrow type of this type's values in data files."""
    simple = _SIMPLE.get(logical_type)
    if simple is not None and not children:
        return simple
    try:
        nested = _nested_to_arrow(logical_type, children)
        if nested is None and children:
            raise CorruptTableError(f"type {logical_type!r} has child fields", found=logical_type)
        return nested if nested is not None else _parametric_to_arrow(logical_type)
    except LanceTableError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError, pa.ArrowException) as error:
        msg = f"type {logical_type!r} is not well formed"
        raise CorruptTableError(msg, found=logical_type) from error


def from_arrow(dtype: pa.DataType) -> str:
    """Return the type string for an Arrow storage type."""
    name = _SIMPLE_NAMES.get(dtype)
    if name is None:
        name = _nested_from_arrow(dtype) or _parametric_from_arrow(dtype)
    if name is None:
        msg = f"Arrow type {dtype} is not supported by the Lance format"
        raise UnsupportedError(msg, found=str(dtype), action="Cast the column to another type.")
    return name


def _nested_to_arrow(logical_type: str, children: Sequence[pa.Field]) -> pa.DataType | None:
    if logical_type == "struct":
        return pa.struct(list(children))
    if logical_type in _LISTS:
        (item,) = children
        return pa.large_list(item) if logical_type.startswith("large") else pa.list_(item)
    if logical_type == "map":
        (entries,) = children
        key, value = entries.type
        return pa.map_(key, value)
    if logical_type.startswith("fixed_size_list:struct:"):
        (item,) = children
        return pa.list_(item, _size(logical_type.rsplit(":", 1)[1]))
    return None


def _parametric_to_arrow(logical_type: str) -> pa.DataType:
    kind, _, rest = logical_type.partition(":")
    if logical_type.count("fixed_size_list:") + logical_type.count("dict:") > _MAX_NESTING:
        raise ValueError(kind)
    match kind:
        case "fixed_size_binary":
            return pa.binary(_size(rest))
        case "fixed_size_list":
            inner, size = rest.rsplit(":", 1)
            return pa.list_(_list_item(inner), _size(size))
        case "decimal":
            bits, precision, scale = rest.split(":")
            make = {"128": pa.decimal128, "256": pa.decimal256}.get(bits)
            if make is None:
                raise ValueError(bits)
            return make(int(precision), int(scale))
        case "timestamp":
            unit, zone = rest.split(":", 1)
            return pa.timestamp(unit, tz=None if zone == "-" else zone)
        case "dict":
            value, index, _ordered = rest.rsplit(":", 2)
            return pa.dictionary(to_arrow(index), to_arrow(value))
        case _:
            msg = f"unknown type {logical_type!r}"
            raise UnsupportedError(msg, found=logical_type)


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 31):
        raise ValueError(text)
    return int(text)


def _list_item(inner: str) -> pa.Field:
    if inner == BFLOAT16:
        metadata = {EXTENSION_NAME: BFLOAT16, EXTENSION_METADATA: ""}
        return pa.field("item", _BFLOAT16_STORAGE, metadata=metadata)
    return pa.field("item", to_arrow(inner))


def _nested_from_arrow(dtype: pa.DataType) -> str | None:
    if pa.types.is_struct(dtype):
        return "struct"
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        base = "large_list" if pa.types.is_large_list(dtype) else "list"
        return f"{base}.struct" if pa.types.is_struct(_opened(dtype.value_type)) else base
    if pa.types.is_map(dtype) and not dtype.keys_sorted:
        return "map"
    return None


def _parametric_from_arrow(dtype: pa.DataType) -> str | None:
    if pa.types.is_fixed_size_binary(dtype):
        return f"fixed_size_binary:{dtype.byte_width}"
    if pa.types.is_fixed_size_list(dtype):
        return _fixed_size_list_name(dtype)
    if pa.types.is_decimal128(dtype) or pa.types.is_decimal256(dtype):
        return f"decimal:{dtype.bit_width}:{dtype.precision}:{dtype.scale}"
    if pa.types.is_timestamp(dtype):
        return f"timestamp:{dtype.unit}:{dtype.tz or '-'}"
    if pa.types.is_dictionary(dtype):
        return _dictionary_name(dtype)
    return None


def _dictionary_name(dtype: pa.DataType) -> str | None:
    """Name a dictionary with values of a one-word type: official readers split at each colon."""
    value = _SIMPLE_NAMES.get(dtype.value_type)
    if value is None or ":" in value:
        return None
    return f"dict:{value}:{from_arrow(dtype.index_type)}:false"


def _fixed_size_list_name(dtype: pa.DataType) -> str | None:
    item = _opened(dtype.value_type)
    if dtype.list_size == 0:
        return None
    if item == _BFLOAT16_STORAGE and _is_bfloat16(dtype.value_field):
        return f"fixed_size_list:{BFLOAT16}:{dtype.list_size}"
    if pa.types.is_struct(item):
        return f"fixed_size_list:struct:{dtype.list_size}"
    if pa.types.is_nested(item) and not _is_list_of_values(item):
        return None
    name = f"fixed_size_list:{from_arrow(item)}:{dtype.list_size}"
    return name if name.count("fixed_size_list:") <= _MAX_NESTING else None


def _is_list_of_values(dtype: pa.DataType) -> bool:
    return pa.types.is_fixed_size_list(dtype) and not pa.types.is_struct(_opened(dtype.value_type))


def _opened(dtype: pa.DataType) -> pa.DataType:
    return dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype


def _is_bfloat16(item: pa.Field) -> bool:
    if isinstance(item.type, pa.BaseExtensionType):
        return bool(item.type.extension_name == BFLOAT16)
    return (item.metadata or {}).get(EXTENSION_NAME.encode()) == BFLOAT16.encode()
