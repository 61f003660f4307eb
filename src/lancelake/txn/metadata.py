"""Changes of config, table metadata, schema metadata and field metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format import primary_key
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.operations.update_config import MapUpdate
from lancelake.format.schema import Field, Schema


def changed(before: FrozenMap[str, str], update: MapUpdate | None) -> FrozenMap[str, str]:
    """Set and remove keys; a replacing update clears the map first."""
    if update is None:
        return before
    after = {} if update.replace else dict(before)
    for key, value in update.entries.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    return FrozenMap(after)


def with_schema_metadata(schema: Schema, update: MapUpdate | None) -> Schema:
    """Change the metadata of the schema."""
    return replace(schema, metadata=_changed_bytes(schema.metadata, update))


def with_field_metadata(schema: Schema, updates: Mapping[FieldId, MapUpdate]) -> Schema:
    """Change the metadata of fields; primary key entries take effect."""
    if not updates:
        return schema
    known = schema.by_id()
    for field_id in updates:
        if field_id not in known:
            msg = f"field id {field_id} does not exist"
            raise InvalidRequestError(msg, field_id=field_id)
    after = replace(schema, fields=tuple(_with_metadata(f, updates) for f in schema.fields))
    primary_key.ensure_valid(after)
    return after


def _with_metadata(node: Field, updates: Mapping[FieldId, MapUpdate]) -> Field:
    children = tuple(_with_metadata(c, updates) for c in node.children)
    if node.id not in updates:
        return node if children == node.children else node.with_children(children)
    metadata = _changed_bytes(node.metadata, updates[node.id])
    is_key, position = primary_key.marks(metadata)
    return replace(
        node,
        children=children,
        metadata=metadata,
        unenforced_primary_key=is_key,
        unenforced_primary_key_position=position,
    )


def _changed_bytes(
    before: FrozenMap[str, bytes], update: MapUpdate | None
) -> FrozenMap[str, bytes]:
    if update is None:
        return before
    kept = {} if update.replace else dict(before)
    for key, value in update.entries.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value.encode()
    return FrozenMap(kept)
