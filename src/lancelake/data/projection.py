"""Projection: the fields to read from each file of a fragment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProjection:
    """A data file and the fields to read from it."""

    file: DataFile
    fields: tuple[Field, ...]


def prune(field: Field, keep: frozenset[FieldId] | set[FieldId]) -> Field | None:
    """Reduce a field to the columns in `keep`; None when nothing is left."""
    if field.owns_column:
        return field if field.id in keep else None
    children = (prune(child, keep) for child in field.children)
    kept = tuple(child for child in children if child is not None)
    return field.with_children(kept) if kept else None


def columns_of(field: Field) -> set[FieldId]:
    """Ids of all nodes of a field that own a column."""
    if field.owns_column:
        return {field.id}
    return {i for child in field.children for i in columns_of(child)}


def split(fragment: Fragment, schema: Schema) -> tuple[FileProjection, ...]:
    """Return the fields to read from each file; of two files with a field, the first is used."""
    wanted = {i for field in schema.fields for i in columns_of(field)}
    parts: list[FileProjection] = []
    for file in fragment.files:
        here = wanted.intersection(file.fields)
        if not here:
            continue
        if here == wanted and not parts:
            return (FileProjection(file=file, fields=schema.fields),)
        wanted -= here
        pruned = (prune(field, here) for field in schema.fields)
        fields = tuple(field for field in pruned if field is not None)
        parts.append(FileProjection(file=file, fields=fields))
    return tuple(parts)


def project(schema: Schema, paths: tuple[tuple[str, ...], ...]) -> Schema:
    """Reduce a schema to these paths of exact names, in schema order.

    If nothing is left out, the same object is returned, so that what is cached for it is found.
    """
    whole = {path[0] for path in paths if len(path) == 1}
    if whole and len(whole) == len(schema.fields) and whole.issuperset(schema.names):
        return schema
    keep: set[FieldId] = set()
    for path in paths:
        node = _node(schema, path)
        if node is not None:
            keep |= columns_of(node)
    pruned = (prune(field, keep) for field in schema.fields)
    return Schema(
        fields=tuple(field for field in pruned if field is not None), metadata=schema.metadata
    )


def _node(schema: Schema, path: tuple[str, ...]) -> Field | None:
    level = schema.fields
    node: Field | None = None
    for segment in path:
        node = next((f for f in level if f.name == segment), None)
        # A single column is read as a whole.
        if node is None or node.owns_column:
            return node
        level = node.children
    return node


def stored_schema(fragment: Fragment, schema: Schema) -> Schema:
    """Reduce a schema to the columns in a fragment's files."""
    held = {field_id for file in fragment.files for field_id in file.fields}
    pruned = (prune(field, held) for field in schema.fields)
    return replace(schema, fields=tuple(field for field in pruned if field is not None))
