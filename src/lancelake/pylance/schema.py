"""Schema of a table: fields with ids, and conversion from and to Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lancelake.core.values import metadata as core_metadata
from lancelake.errors import InvalidRequestError, LanceTableError

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]

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
        raise InvalidRequestError(f"this JSON does not describe a schema: {error!r}") from error
    return core_metadata.logical_types.resolved(plain)


def _show_field(field: pa.Field) -> dict[str, Json]:
    dtype, metadata = core_metadata.logical_types.opened(field)
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
    return {"type": core_metadata.logical_types.from_arrow(dtype)}


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
    return core_metadata.logical_types.to_arrow(name)


_CLUSTERING_POSITION = "lance-schema:unenforced-clustering-key:position"
_ENCODINGS = {
    core_metadata.Encoding.NONE: "None",
    core_metadata.Encoding.PLAIN: "Some(Plain)",
    core_metadata.Encoding.VAR_BINARY: "Some(VarBinary)",
    core_metadata.Encoding.DICTIONARY: "Some(Dictionary)",
    core_metadata.Encoding.RLE: "Some(RLE)",
}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


class LanceField:
    """A field of a table's schema."""

    __slots__ = ("_field",)

    def __init__(self, field: core_metadata.Field) -> None:
        self._field = field

    def name(self) -> str:
        """Return the name."""
        return self._field.name

    def id(self) -> int:
        """Return the id, which is kept when the field is renamed."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Return the child fields."""
        return [LanceField(child) for child in self._field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata attached to the field."""
        return {k: v.decode(errors="replace") for k, v in self._field.metadata.items()}

    def to_arrow(self) -> pa.Field:
        """Return the Arrow field with the storage type."""
        return _resolve([self._field], {}).field(0)

    def is_unenforced_primary_key(self) -> bool:
        """Whether the field is part of the primary key."""
        return self._field.unenforced_primary_key

    def unenforced_primary_key_position(self) -> int | None:
        """Return the position in the primary key, from 1; None if it is not recorded."""
        return self._field.unenforced_primary_key_position or None

    def is_unenforced_clustering_key(self) -> bool:
        """Whether the field is part of the clustering key."""
        return _clustering_position(self._field) is not None

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the position in the clustering key, from 1."""
        return _clustering_position(self._field)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LanceField) and _identity(self._field) == _identity(other._field)

    def __hash__(self) -> int:
        return hash(_identity(self._field))

    def __repr__(self) -> str:
        return _debug_field(self._field)


class LanceSchema:
    """The schema of a table: fields with ids, and metadata."""

    __slots__ = ("_schema",)

    def __init__(self, schema: core_metadata.Schema) -> None:
        self._schema = schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Return the schema of a new table for such data."""
        if not isinstance(schema, pa.Schema):
            raise TypeError(f"schema must be a pyarrow.Schema, got {type(schema)}")
        return LanceSchema(core_metadata.arrow_schema.from_arrow(schema))

    def to_pyarrow(self) -> pa.Schema:
        """Return the Arrow schema with storage types."""
        return _resolve(self._schema.fields, self._schema.metadata)

    def fields(self) -> list[LanceField]:
        """Return the top-level fields."""
        return [LanceField(field) for field in self._schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return the field at a path, None if it does not exist."""
        return self._found(name, exact=True)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return the field at a case-insensitive path; an exact match takes precedence."""
        return self._found(name, exact=True) or self._found(name, exact=False)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Return the fields of the primary key in key order."""
        return [LanceField(field) for field in self._schema.primary_key()]

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the clustering key in key order."""
        placed = [(_clustering_position(field), field) for field in self._schema.walk()]
        keys = [(position, field) for position, field in placed if position is not None]
        return [LanceField(field) for _, field in sorted(keys, key=lambda key: key[0])]

    def _found(self, path: str, *, exact: bool) -> LanceField | None:
        try:
            segments = core_metadata.split_path(path)
        except InvalidRequestError:
            return None
        level = self._schema.fields
        node: core_metadata.Field | None = None
        for segment in segments:
            node = next((f for f in level if _is_named(f, segment, exact=exact)), None)
            if node is None:
                return None
            level = node.children
        return None if node is None else LanceField(node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LanceSchema) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(tuple(self.fields()))

    def __repr__(self) -> str:
        fields = ", ".join(_debug_field(field) for field in self._schema.fields)
        metadata = _debug_map(self._schema.metadata)
        return f"Schema {{ fields: [{fields}], metadata: {metadata} }}"


def to_schema(schema: LanceSchema | pa.Schema) -> core_metadata.Schema:
    """Return the corresponding schema of the format."""
    lance_schema = schema if isinstance(schema, LanceSchema) else LanceSchema.from_pyarrow(schema)
    return lance_schema._schema


def _is_named(field: core_metadata.Field, name: str, *, exact: bool) -> bool:
    return field.name == name if exact else field.name.lower() == name.lower()


def _resolve(
    fields: tuple[core_metadata.Field, ...] | list[core_metadata.Field],
    metadata: Mapping[str, bytes],
) -> pa.Schema:
    plain = [core_metadata.arrow_schema.storage_field(field) for field in fields]
    return core_metadata.logical_types.resolved(pa.schema(plain, dict(metadata) or None))


def _identity(field: core_metadata.Field) -> tuple[object, ...]:
    return (
        field.name,
        field.id,
        field.parent_id,
        field.logical_type,
        field.nullable,
        field.metadata,
        field.unenforced_primary_key,
        field.unenforced_primary_key_position,
        tuple(_identity(child) for child in field.children),
    )


def _clustering_position(field: core_metadata.Field) -> int | None:
    text = field.metadata.get(_CLUSTERING_POSITION, b"")
    return int(text) if text.isdigit() and int(text) else None


def _debug_field(field: core_metadata.Field) -> str:
    """Format a field as official releases do: as Rust's debug output."""
    children = ", ".join(_debug_field(child) for child in field.children)
    primary = field.unenforced_primary_key_position if field.unenforced_primary_key else None
    parts = {
        "name": _debug_text(field.name),
        "id": field.id,
        "parent_id": field.parent_id,
        "logical_type": f"LogicalType({_debug_text(field.logical_type)})",
        "metadata": _debug_map(field.metadata),
        "encoding": _ENCODINGS[field.encoding],
        "nullable": "true" if field.nullable else "false",
        "children": f"[{children}]",
        "dictionary": _debug_dictionary(field.dictionary),
        "unenforced_primary_key_position": _debug_option(primary),
        "unenforced_clustering_key_position": _debug_option(_clustering_position(field)),
    }
    return f"Field {{ {', '.join(f'{name}: {value}' for name, value in parts.items())} }}"


def _debug_dictionary(page: core_metadata.DictionaryPage | None) -> str:
    if page is None or page.length == 0:
        return "None"
    return f"Some(Dictionary {{ offset: {page.offset}, length: {page.length}, values: None }})"


def _debug_option(value: int | None) -> str:
    return "None" if value is None else f"Some({value})"


def _debug_map(values: Mapping[str, bytes]) -> str:
    pairs = (
        f"{_debug_text(key)}: {_debug_text(value.decode(errors='replace'))}"
        for key, value in values.items()
    )
    return f"{{{', '.join(pairs)}}}"


def _debug_text(text: str) -> str:
    return f'"{"".join(_debug_char(char) for char in text)}"'


def _debug_char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"
