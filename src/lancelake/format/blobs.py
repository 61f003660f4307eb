"""What a blob column shows when it is read: where each value lies, not the value."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.logical_types import EXTENSION_METADATA, EXTENSION_NAME
from lancelake.format.schema import BLOB_KEY, Field, Schema

_NO_ID = FieldId(-1)
_V1 = (("position", "uint64"), ("size", "uint64"))
_V2 = (
    ("kind", "uint8"),
    ("position", "uint64"),
    ("size", "uint64"),
    ("blob_id", "uint32"),
    ("blob_uri", "string"),
)


def has_blobs(field: Field) -> bool:
    """Whether a field is, or holds, a blob."""
    return any(node.is_blob_v1 or node.is_blob_v2 for node in field.walk())


def described(field: Field) -> Field:
    """Return the field with every blob in it turned into its descriptor."""
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
    """Return the schema with every blob turned into its descriptor."""
    return replace(schema, fields=tuple(described(field) for field in schema.fields))


def _members(members: tuple[tuple[str, str], ...], *, nullable: bool) -> tuple[Field, ...]:
    return tuple(
        Field(name=name, id=_NO_ID, logical_type=logical_type, nullable=nullable)
        for name, logical_type in members
    )
