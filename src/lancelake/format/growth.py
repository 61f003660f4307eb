"""New fields of nested columns that cannot be added to data files in place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lancelake.errors import InvalidRequestError
from lancelake.format.evolution import ensure_same_type, numbered, takes_members_in_place
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema

_MAP = "map"

Trail = tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Columns to rewrite, before and after, and what can be added in place.

    `schema` is the table's schema with the rewritten columns.
    """

    schema: Schema
    before: Schema
    after: Schema
    in_place: Schema


def grow(schema: Schema, new: Schema, *, first_id: int, version: FileVersion) -> Growth:
    """Add columns and fields; a column whose files cannot get fields in place is rewritten."""
    known = {field.name: field for field in schema.fields}
    fresh = itertools.count(first_id)
    before: list[Field] = []
    after: list[Field] = []
    in_place: list[Field] = []
    for field in new.fields:
        old = known.get(field.name)
        if old is None or takes_members_in_place(old, field, version):
            in_place.append(field)
            continue
        merged = numbered(_merged(old, field, ()), old.parent_id, fresh)
        before.append(old)
        after.append(merged)
        known[field.name] = merged
    return Growth(
        schema=replace(schema, fields=tuple(known[field.name] for field in schema.fields)),
        before=replace(schema, fields=tuple(before)),
        after=replace(schema, fields=tuple(after)),
        in_place=replace(new, fields=tuple(in_place)),
    )


def missing_members(known: Schema, data: Schema) -> Schema:
    """Reduce the fields of data to those that the columns of a table do not have."""
    by_name = {field.name: field for field in known.fields}
    pairs = ((by_name.get(field.name), field) for field in data.fields)
    return replace(data, fields=tuple(_missing(pairs)))


def _missing(pairs: Iterator[tuple[Field | None, Field]]) -> Iterator[Field]:
    for old, new in pairs:
        if old is None or old.owns_column or old.logical_type != new.logical_type:
            continue
        if old.logical_type == _MAP:
            yield from _missing_in_map(old, new)
            continue
        own = {child.name: child for child in old.children}
        # The names of list items differ between writers.
        is_single = len(old.children) == len(new.children) == 1 and old.logical_type != "struct"
        matched = [old.children[0] if is_single else own.get(c.name) for c in new.children]
        added = [c for c, match in zip(new.children, matched, strict=True) if match is None]
        below = list(_missing(iter(zip(matched, new.children, strict=True))))
        if added or below:
            yield old.with_children((*below, *(replace(c, nullable=True) for c in added)))


def _missing_in_map(old: Field, new: Field) -> Iterator[Field]:
    """Reduce the values of a map; the key stays, since a map has both."""
    (entries,), (others,) = old.children, new.children
    key, value = entries.children
    for below in _missing(iter([(value, others.children[1])])):
        yield old.with_children((entries.with_children((key, below)),))


def _merged(old: Field, new: Field, path: Trail) -> Field:
    """Return a field with the children of both, the new ones at the end."""
    trail = (*path, old)
    where = ensure_same_type(old, new, path)
    if not old.children or old.owns_column:
        raise InvalidRequestError(f"Column {where} already exists in the dataset", column=where)
    children = {child.name: child for child in old.children}
    # The first field of the entries of a map is the key, which stays.
    is_entries = bool(path) and path[-1].logical_type == _MAP
    for child in new.children[1:] if is_entries else new.children:
        match = children.get(child.name)
        children[child.name] = child if match is None else _merged(match, child, trail)
    return old.with_children(tuple(children.values()))
