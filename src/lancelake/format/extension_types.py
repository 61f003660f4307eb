"""Conversion between Arrow extension types and storage types with field metadata."""

from __future__ import annotations

import ctypes
import struct

import pyarrow as pa

from lancelake.errors import CorruptTableError

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
