"""JSON form of Arrow schemas, as exchanged by official releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lancelake.errors import InvalidRequestError, LanceTableError
from lancelake.format import extension_types, logical_types

Json = Any  # whatever `json` can carry; checked while it is read

_LISTS = ("list", "large_list")
_SIZED = ("fixed_size_list", "fixed_size_binary")


def schema_to_json(schema: pa.Schema) -> dict[str, Json]:
    """Convert an Arrow schema to plain dictionaries and lists."""
    shown: dict[str, Json] = {"fields": [_show_field(field) for field in schema]}
    return shown | _show_metadata(schema.metadata)


def json_to_schema(schema_json: dict[str, Json]) -> pa.Schema:
    """Parse the output of `schema_to_json`."""
    try:
        fields = [_read_field(field) for field in schema_json["fields"]]
        plain = pa.schema(fields, schema_json.get("metadata"))
    except LanceTableError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        msg = f"this JSON does not describe a schema: {error!r}"
        raise InvalidRequestError(msg) from error
    return extension_types.resolved(plain)


def _show_field(field: pa.Field) -> dict[str, Json]:
    dtype, metadata = extension_types.opened(field)
    shown = {"name": field.name, "type": _show_type(dtype), "nullable": field.nullable}
    return shown | _show_metadata(metadata)


def _show_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Json]:
    if not metadata:
        return {}
    return {"metadata": {key.decode(): value.decode() for key, value in metadata.items()}}


def _show_type(dtype: pa.DataType) -> dict[str, Json]:
    if pa.types.is_fixed_size_binary(dtype):
        return {"type": "fixed_size_binary", "length": dtype.byte_width}
    if pa.types.is_fixed_size_list(dtype):
        item = _show_field(dtype.value_field)
        return {"type": "fixed_size_list", "fields": [item], "length": dtype.list_size}
    if pa.types.is_list(dtype):
        return {"type": "list", "fields": [_show_field(dtype.value_field)]}
    if pa.types.is_large_list(dtype):
        return {"type": "large_list", "fields": [_show_field(dtype.value_field)]}
    if pa.types.is_struct(dtype):
        return {"type": "struct", "fields": [_show_field(field) for field in dtype]}
    if pa.types.is_map(dtype) or pa.types.is_string_view(dtype) or pa.types.is_binary_view(dtype):
        raise InvalidRequestError(f"Arrow type {dtype} has no JSON form", found=str(dtype))
    return {"type": logical_types.from_arrow(dtype)}


def _read_field(field: Json) -> pa.Field:
    dtype = _read_type(field["type"])
    return pa.field(field["name"], dtype, bool(field["nullable"]), field.get("metadata"))


def _read_type(shown: Json) -> pa.DataType:
    name = shown["type"]
    if name == "struct":
        return pa.struct([_read_field(field) for field in shown["fields"]])
    if name in _LISTS:
        (item,) = shown["fields"]
        make = pa.list_ if name == "list" else pa.large_list
        return make(_read_field(item))
    if name == "fixed_size_list":
        (item,) = shown["fields"]
        return pa.list_(_read_field(item), shown["length"])
    if name == "fixed_size_binary":
        return pa.binary(shown["length"])
    if name.partition(":")[0] in _SIZED:
        raise InvalidRequestError(f"type {name!r} needs a separate length", found=name)
    return logical_types.to_arrow(name)
