"""Arrow schema of a data file for the codec, and its columns."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lancelake.format import logical_types
from lancelake.format.arrow_schema import FIELD_ID
from lancelake.format.extension_names import EXTENSION_NAME, JSON
from lancelake.format.file_version import FileVersion
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema

BLOB_VALUE = pa.struct(
    [
        ("data", pa.large_binary()),
        ("uri", pa.string()),
        ("position", pa.uint64()),
        ("size", pa.uint64()),
    ]
)
"""A blob to write: bytes or a URI."""

# Blob values for the codec; official releases call these arrays prepared.
PREPARED_BLOB = pa.struct(
    [
        ("kind", pa.uint8()),
        ("data", pa.large_binary()),
        ("uri", pa.string()),
        ("blob_id", pa.uint32()),
        ("blob_size", pa.uint64()),
        ("position", pa.uint64()),
    ]
)


def file_schema(schema: Schema) -> pa.Schema:
    """Return the schema to open a writer with; every field carries its id."""
    return pa.schema([file_field(f) for f in schema.fields], dict(schema.metadata) or None)


def file_field(field: Field) -> pa.Field:
    """Return one column of `file_schema`."""
    metadata = dict(field.metadata) | {FIELD_ID: str(field.id).encode()}
    if field.is_json:
        metadata[EXTENSION_NAME] = JSON.encode()
    return pa.field(field.name, _type(field), field.nullable, metadata)


def column_ids(schema: Schema, version: FileVersion) -> tuple[FieldId, ...]:
    """Return the fields that own the columns of a file, in the order of the columns."""
    return tuple(owner for field in schema.fields for owner in _owners(field, version))


def _type(field: Field) -> pa.DataType:
    if field.is_blob_v2:
        return PREPARED_BLOB
    children = [file_field(child) for child in field.children]
    return logical_types.to_arrow(field.logical_type, children)


def _owners(field: Field, version: FileVersion) -> Iterator[FieldId]:
    if field.owns_column or not version.leaves_only:
        yield field.id
    if not field.owns_column:
        for child in field.children:
            yield from _owners(child, version)
