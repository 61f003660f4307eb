"""Types of Arrow as Lance names them, extension types and blob descriptors included."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum

import pyarrow as pa

from lancelake.errors import CorruptTableError, LanceTableError, UnsupportedError
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.schema import (
    BFLOAT16,
    BLOB_KEY,
    EXTENSION_METADATA,
    EXTENSION_NAME,
    Field,
    Schema,
)

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


_LENGTH = struct.Struct("=i")

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _ArrowSchema(ctypes.Structure):
    """The head of `struct ArrowSchema` of the Arrow C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


class _Exported:
    """A schema in its C form only, so that pyarrow imports it again."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()


def opened(field: pa.Field) -> tuple[pa.DataType, dict[bytes, bytes]]:
    """Return the storage type, and the metadata with the extension's name and parameters in it."""
    if not isinstance(field.type, pa.BaseExtensionType):
        return field.type, dict(field.metadata or {})
    # pyarrow exposes the parameters of its built-in types in the C data interface only.
    capsule = field.__arrow_c_schema__()
    address = _capsule_pointer(capsule, b"arrow_schema")
    metadata = _ArrowSchema.from_address(address).metadata
    return field.type.storage_type, _read_metadata(metadata) if metadata else {}


def resolved(schema: pa.Schema) -> pa.Schema:
    """Replace storage types by the registered extension types that their metadata names."""
    try:
        return pa.schema(_Exported(schema))
    except Exception as error:  # the code of a registered type may raise anything
        msg = f"an extension type of the schema cannot be built: {error}"
        raise CorruptTableError(msg) from error


def _read_metadata(address: int) -> dict[bytes, bytes]:
    """Decode length-prefixed pairs after their count."""
    position = address

    def number() -> int:
        nonlocal position
        (value,) = _LENGTH.unpack(ctypes.string_at(position, _LENGTH.size))
        position += _LENGTH.size
        return int(value)

    def part() -> bytes:
        nonlocal position
        size = number()
        value = ctypes.string_at(position, size)
        position += size
        return value

    return {part(): part() for _ in range(number())}


_ID_BITS = 32
_NO_ID = FieldId(-1)
_V1 = (("position", "uint64"), ("size", "uint64"))
_V2 = (
    ("kind", "uint8"),
    ("position", "uint64"),
    ("size", "uint64"),
    ("blob_id", "uint32"),
    ("blob_uri", "string"),
)


class BlobKind(IntEnum):
    """Kinds of storage for a value of blob encoding v2."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2
    EXTERNAL = 3


def side_file(data_file: str, blob_id: int) -> str:
    """Path of the file for blobs that are stored outside of the data file."""
    name = f"{blob_id:0{_ID_BITS}b}"[::-1] + ".blob"
    return f"{data_file.removesuffix('.lance')}/{name}"


def has_blobs(field: Field) -> bool:
    """Whether a field is a blob or has one below it."""
    return any(node.is_blob_v1 or node.is_blob_v2 for node in field.walk())


def described(field: Field) -> Field:
    """Return the field with every blob in it replaced by its descriptor."""
    if field.is_blob_v1:
        return replace(field, logical_type="struct", children=_members(_V1, nullable=True))
    if field.is_blob_v2:
        dropped = (EXTENSION_NAME, EXTENSION_METADATA)
        metadata = {k: v for k, v in field.metadata.items() if k not in dropped}
        metadata |= {BLOB_KEY: b"true", "lance-encoding:packed": b"true"}
        children = _members(_V2, nullable=False)
        return replace(field, metadata=FrozenMap(metadata), children=children)
    if not has_blobs(field):
        return field
    return field.with_children(tuple(described(child) for child in field.children))


def described_schema(schema: Schema) -> Schema:
    """Return the schema with every blob replaced by its descriptor."""
    return replace(schema, fields=tuple(described(field) for field in schema.fields))


def valued(field: Field) -> Field:
    """Return the field with every blob in it replaced by its bytes."""
    if field.is_blob_v1:
        return field
    if field.is_blob_v2:
        dropped = (EXTENSION_NAME, EXTENSION_METADATA)
        metadata = {k: v for k, v in field.metadata.items() if k not in dropped}
        return replace(
            field, logical_type="large_binary", metadata=FrozenMap(metadata), children=()
        )
    if not has_blobs(field):
        return field
    return field.with_children(tuple(valued(child) for child in field.children))


def _members(members: tuple[tuple[str, str], ...], *, nullable: bool) -> tuple[Field, ...]:
    return tuple(
        Field(name=name, id=_NO_ID, logical_type=logical_type, nullable=nullable)
        for name, logical_type in members
    )
