"""Blob columns: descriptors of where values are stored, and the fields readers see."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from lancelake.format.extension_names import EXTENSION_METADATA, EXTENSION_NAME
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.schema import BLOB_KEY, Field, Schema

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
