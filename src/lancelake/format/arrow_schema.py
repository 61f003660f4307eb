"""Conversion between table schemas and Arrow schemas, stored and user-facing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from lancelake import errors
from lancelake.format import logical_types, primary_key
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.format.schema import (
    ARROW_JSON,
    BLOB_V2,
    EXTENSION_NAME,
    JSON,
    MAX_DEPTH,
    DictionaryPage,
    Encoding,
    Field,
    Schema,
    join_path,
)

FIELD_ID = "lance:field_id"
RESERVED_NAMES = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)

_UNNUMBERED = FieldId(-1)
_MAX_ID = (1 << 31) - 1
_INTEGER = re.compile(rb"[+-]?[0-9]{1,19}")
_VAR_BINARY = frozenset({"string", "large_string", "binary", "large_binary", "json"})
_BLOB_LAYOUTS = (["data", "uri"], ["data", "uri", "position", "size"])


def storage_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of data files; extension types stay metadata."""
    return pa.schema([storage_field(f) for f in schema.fields], dict(schema.metadata) or None)


def storage_field(field: Field) -> pa.Field:
    """Return the Arrow field of a column in data files; extension types stay metadata."""
    metadata = dict(field.metadata)
    if field.is_json:
        # Below the top level, releases 4.x keep the name of the written data.
        metadata[EXTENSION_NAME] = JSON.encode()
    children = [storage_field(child) for child in field.children]
    return _arrow_field(field, logical_types.to_arrow(field.logical_type, children), metadata)


def public_schema(schema: Schema) -> pa.Schema:
    """Return the schema users see, with those extension types that are registered."""
    plain = pa.schema([_shown(f) for f in schema.fields], dict(schema.metadata) or None)
    return logical_types.resolved(plain)


def public_field(field: Field) -> pa.Field:
    """Return the field users see, with those extension types that are registered."""
    return logical_types.resolved(pa.schema([_shown(field)])).field(0)


def from_arrow(schema: pa.Schema, *, first_id: int = 0) -> Schema:
    """Return the table schema for this data, its fields numbered in pre-order from `first_id`.

    Ids under the metadata key `lance:field_id` are kept; other fields continue from the highest.
    """
    _ensure_names(schema.names)
    fields = tuple(_converted(field, (field.name,)) for field in schema)
    metadata = _with_text(schema.metadata or {}, "the schema")
    result = Schema(fields=_numbered(fields, first_id), metadata=FrozenMap(metadata))
    primary_key.ensure_valid(result)
    _ensure_shows(result)
    return result


def expression_scope(schema: pa.Schema) -> Schema:
    """Return the schema of values that are used in expressions and never stored.

    A column may occur twice, so primary keys and ids under `lance:field_id` are ignored.
    """
    plain = tuple(_unmarked(_converted(field, (field.name,))) for field in schema)
    return Schema(fields=_numbered(plain, 0))


def _unmarked(field: Field) -> Field:
    return replace(
        field,
        id=_UNNUMBERED,
        children=tuple(_unmarked(child) for child in field.children),
        unenforced_primary_key=False,
        unenforced_primary_key_position=0,
    )


def _shown(field: Field) -> pa.Field:
    metadata = dict(field.metadata)
    if field.is_json:
        metadata[EXTENSION_NAME] = ARROW_JSON.encode()
        return _arrow_field(field, pa.string(), metadata)
    children = [_shown(child) for child in field.children]
    return _arrow_field(field, logical_types.to_arrow(field.logical_type, children), metadata)


def _arrow_field(field: Field, dtype: pa.DataType, metadata: Mapping[str, bytes]) -> pa.Field:
    try:
        return pa.field(field.name, dtype, field.nullable, metadata or None)
    except ValueError as error:
        msg = f"field {field.name!r} of type {field.logical_type!r} is not well formed: {error}"
        raise errors.CorruptTableError(msg, field=field.name) from error


def _ensure_shows(schema: Schema) -> None:
    """Raise when a field's extension type does not support the field's storage type."""
    try:
        public_schema(schema)
    except errors.CorruptTableError as error:
        raise errors.InvalidRequestError(error.problem) from error


def _ensure_names(names: Sequence[str]) -> None:
    for position, name in enumerate(names):
        if "." in name:
            msg = f"the name of column {name!r} cannot contain `.`"
            action = "Rename it, or use a field of a struct."
            raise errors.InvalidNameError(msg, column=name, action=action)
        if name in RESERVED_NAMES:
            raise errors.InvalidNameError(f"column name {name!r} is reserved", column=name)
        if name in names[:position]:
            raise errors.InvalidNameError(f"Duplicate field name {name!r} in schema", column=name)


def _converted(field: pa.Field, path: tuple[str, ...]) -> Field:
    where = join_path(path)
    dtype, raw = logical_types.opened(field)
    metadata = _with_text(raw, f"column {where}")
    field_id = _explicit_id(metadata.pop(FIELD_ID, None), where)
    logical_type = _logical_type(dtype, metadata, where)
    if logical_type == "json":
        metadata[EXTENSION_NAME] = JSON.encode()
    if len(path) > MAX_DEPTH:
        raise errors.UnsupportedError(f"column {where} is nested too deeply", column=where)
    is_key, position = primary_key.marks(metadata)
    is_dictionary = logical_type.startswith("dict:")
    return Field(
        name=field.name,
        id=field_id,
        logical_type=logical_type,
        nullable=field.nullable,
        children=tuple(_converted(child, (*path, child.name)) for child in _members(dtype)),
        metadata=FrozenMap(metadata),
        encoding=_encoding(logical_type),
        dictionary=DictionaryPage(offset=0, length=0) if is_dictionary else None,
        unenforced_primary_key=is_key,
        unenforced_primary_key_position=position,
    )


def _logical_type(dtype: pa.DataType, metadata: Mapping[str, bytes], where: str) -> str:
    extension = metadata.get(EXTENSION_NAME, b"").decode()
    if extension == ARROW_JSON and (pa.types.is_string(dtype) or pa.types.is_large_string(dtype)):
        return "json"
    if extension == JSON and pa.types.is_large_binary(dtype):
        return "json"
    is_struct = pa.types.is_struct(dtype)
    if extension == BLOB_V2 and not (is_struct and dtype.names in _BLOB_LAYOUTS):
        msg = f"column {where} of type {dtype} does not have the fields of {BLOB_V2}"
        action = "Use a struct with the fields data and uri."
        raise errors.UnsupportedError(msg, column=where, found=str(dtype), action=action)
    try:
        return logical_types.from_arrow(dtype)
    except errors.UnsupportedError as error:
        msg = f"column {where} has type {dtype}, which the Lance format does not support"
        if pa.types.is_fixed_size_list(dtype) and not dtype.list_size:
            msg += ": its dimension must be a positive integer"
        if pa.types.is_map(dtype) and dtype.keys_sorted:
            msg += ": unsupported map field with keys_sorted=True"
        action = "Cast the column to another type."
        raise errors.UnsupportedError(msg, column=where, found=str(dtype), action=action) from error


def _members(dtype: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(dtype):
        return list(dtype)
    if pa.types.is_map(dtype):
        entries = pa.struct([dtype.key_field, dtype.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return [dtype.value_field]
    if pa.types.is_fixed_size_list(dtype):
        storage, _ = logical_types.opened(dtype.value_field)
        return [dtype.value_field] if pa.types.is_struct(storage) else []
    return []


def _encoding(logical_type: str) -> Encoding:
    if logical_type in ("struct", "null"):
        return Encoding.NONE
    if logical_type in _VAR_BINARY:
        return Encoding.VAR_BINARY
    return Encoding.DICTIONARY if logical_type.startswith("dict:") else Encoding.PLAIN


def _with_text(metadata: Mapping[bytes, bytes], where: str) -> dict[str, bytes]:
    try:
        for value in metadata.values():
            value.decode()
        return {key.decode(): value for key, value in metadata.items()}
    except UnicodeDecodeError as error:
        msg = f"metadata of {where} is not UTF-8 text"
        raise errors.InvalidRequestError(msg, action="Encode binary metadata as text.") from error


def _explicit_id(value: bytes | None, where: str) -> FieldId:
    """Parse a field id of metadata; a negative one is ignored."""
    if value is None:
        return _UNNUMBERED
    if not _INTEGER.fullmatch(value) or not -_MAX_ID - 1 <= int(value) <= _MAX_ID:
        msg = f"column {where} requests field id {value.decode()!r}, which is not a 32-bit number"
        raise errors.InvalidRequestError(msg, column=where)
    return FieldId(max(int(value), _UNNUMBERED))


def _numbered(fields: tuple[Field, ...], first_id: int) -> tuple[Field, ...]:
    nodes = [node for top in fields for node in top.walk()]
    taken = [node.id for node in nodes if node.id != _UNNUMBERED]
    if len(set(taken)) < len(taken):
        msg = f"field ids are requested twice: {', '.join(map(str, sorted(taken)))}"
        raise errors.InvalidRequestError(msg)
    start = max(first_id, *(i + 1 for i in taken)) if taken else first_id
    if start + len(nodes) - len(taken) > _MAX_ID + 1:
        raise errors.InvalidRequestError("there are no field ids left")
    fresh = itertools.count(start)
    return tuple(_with_ids(top, NO_PARENT, fresh) for top in fields)


def _with_ids(node: Field, parent_id: FieldId, fresh: Iterator[int]) -> Field:
    field_id = FieldId(next(fresh)) if node.id == _UNNUMBERED else node.id
    children = tuple(_with_ids(child, field_id, fresh) for child in node.children)
    return replace(node, id=field_id, parent_id=parent_id, children=children)
