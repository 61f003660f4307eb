"""Changes of a schema: added, removed, renamed, retyped and nested fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lancelake.errors import (
    InvalidNameError,
    InvalidRequestError,
    SchemaMismatchError,
    UnsupportedError,
    suggestion,
)
from lancelake.format.arrow_schema import RESERVED_NAMES
from lancelake.format.fragment import FileVersion, Fragment
from lancelake.format.ids import NO_PARENT, FieldId
from lancelake.format.schema import Field, Schema, follow, join_path, quote_segment, split_path

_KEY_AND_VALUE = 2
_TAKES_MEMBERS = (FileVersion.V2_2, FileVersion.V2_3)
"""Versions of data files whose structs may be divided between several files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widened:
    """A schema with more columns, and these columns alone, below the structs they are in."""

    schema: Schema
    added: Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Alteration:
    """Changes of one field; None keeps a property.

    `retyped` is a field of the new type, whose name, ids and position are ignored.
    """

    path: str
    name: str | None = None
    nullable: bool | None = None
    retyped: Field | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Altered:
    """A schema after alterations; `before` and `after` are the fields whose type changed."""

    schema: Schema
    before: Schema
    after: Schema


def first_free_id(schema: Schema, fragments: Iterable[Fragment]) -> int:
    """Return the first id that neither a field nor a data file has."""
    used = (i for fragment in fragments for file in fragment.files for i in file.fields)
    return max(schema.max_field_id, max(used, default=-1)) + 1


def widen(schema: Schema, new: Schema, *, first_id: int, version: FileVersion) -> Widened:
    """Add columns at the end; new fields of existing structs are added at their end."""
    fresh = itertools.count(first_id)
    merge = _Merge(version=version, fresh=fresh)
    fields, added = merge.level(schema.fields, new.fields, ())
    _ensure_names(fields)
    metadata = type(schema.metadata)({**new.metadata, **schema.metadata})
    return Widened(
        schema=replace(schema, fields=fields, metadata=metadata),
        added=replace(schema, fields=added),
    )


def drop(schema: Schema, paths: Iterable[str]) -> Schema:
    """Remove columns and fields, and parents without fields."""
    gone = {resolve(schema, path)[-1].id for path in paths}
    fields = _without(schema.fields, gone)
    if not fields:
        raise InvalidRequestError("Cannot drop all columns from a dataset")
    return replace(schema, fields=fields)


def alter(schema: Schema, alterations: Sequence[Alteration], *, first_id: int) -> Altered:
    """Rename and retype columns and change nullability; paths refer to the current schema."""
    by_id: dict[FieldId, Alteration] = {}
    for change in alterations:
        field = resolve(schema, change.path)[-1]
        by_id[field.id] = _joined(by_id.get(field.id), change)
    fresh = itertools.count(first_id)
    fields = tuple(_altered(field, by_id, fresh) for field in schema.fields)
    _ensure_names(fields)
    retyped = {i for i, change in by_id.items() if change.retyped is not None}
    pairs = [_changed(*pair, retyped) for pair in zip(schema.fields, fields, strict=True)]
    remaining = [pair for pair in pairs if pair is not None]
    return Altered(
        schema=replace(schema, fields=fields),
        before=replace(schema, fields=tuple(before for before, _ in remaining)),
        after=replace(schema, fields=tuple(after for _, after in remaining)),
    )


def reorder(schema: Schema, names: Sequence[str]) -> Schema:
    """Move columns to the front, in this order; the others keep their order."""
    if len(set(names)) < len(names):
        raise InvalidRequestError(f"columns are listed twice: {', '.join(names)}")
    first = [resolve(schema, quote_segment(name))[0] for name in names]
    rest = [field for field in schema.fields if field not in first]
    return replace(schema, fields=(*first, *rest))


def resolve(schema: Schema, path: str) -> tuple[Field, ...]:
    """Return the fields from the top to the one at a path of exact names."""
    names = split_path(path)
    trail = follow(schema.fields, names, exact=True, opens=lambda node: not node.is_blob_v2)
    if len(trail) < len(names):
        problem = f'Column "{path}" does not exist in the dataset'
        advice = suggestion(path, schema.names, "columns")
        raise InvalidRequestError(problem, column=path, action=advice)
    return trail


def forbids_more_nulls(before: Schema, after: Schema) -> bool:
    """Whether rows written for the schema before may be invalid for the one after.

    Fields below a new nullable column are ignored: old rows are null. A non-nullable struct with a
    new field counts, as in official releases.
    """
    by_id = before.by_id()

    def forbids(field: Field) -> bool:
        old = by_id.get(field.id)
        if old is None:
            return not field.nullable
        is_wider = any(node.id not in by_id for node in field.walk())
        if not field.nullable and (old.nullable or is_wider):
            return True
        return any(map(forbids, field.children))

    return any(map(forbids, after.fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merge:
    """Merges the columns of two schemas; new fields get new ids in pre-order."""

    version: FileVersion
    fresh: Iterator[int]

    def level(
        self, previous: tuple[Field, ...], new: tuple[Field, ...], path: tuple[Field, ...]
    ) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """Return all fields of a level, and those that are new or have new fields below."""
        fields = {field.name: field for field in previous}
        added: list[Field] = []
        parent_id = path[-1].id if path else NO_PARENT
        for field in new:
            old = fields.get(field.name)
            if old is None:
                copy = numbered(field, parent_id, self.fresh)
                fields[field.name] = copy
                added.append(copy)
            else:
                whole, part = self._below(old, field, path)
                fields[field.name] = whole
                added.append(part)
        return tuple(fields.values()), tuple(added)

    def _below(self, old: Field, new: Field, path: tuple[Field, ...]) -> tuple[Field, Field]:
        where = ensure_same_type(old, new, path)
        if not _may_get_members(old):
            msg = f"Column {where} already exists in the dataset"
            raise InvalidRequestError(msg, column=where)
        if self.version not in _TAKES_MEMBERS:
            msg = (
                f"Column {where} is a struct, and fields cannot be added to one "
                f"in data files {self.version.value}"
            )
            action = 'Write the table with data_storage_version="2.2".'
            raise UnsupportedError(msg, column=where, action=action)
        children, added = self.level(old.children, new.children, (*path, old))
        return old.with_children(children), old.with_children(added)


def ensure_same_type(old: Field, new: Field, path: tuple[Field, ...]) -> str:
    """Return the path of a field below others; raise an error if new data has another type."""
    where = _shown((*path, old))
    if old.logical_type != new.logical_type:
        raise SchemaMismatchError(
            f"Type conflicts between {where} of type {old.logical_type} in the table "
            f"and {new.logical_type} in the data",
            path=where,
            expected=old.logical_type,
            found=new.logical_type,
        )
    return where


def takes_members_in_place(field: Field, new: Field, version: FileVersion) -> bool:
    """Whether `widen` can add the fields of `new` that a column does not have."""
    if version not in _TAKES_MEMBERS or not _may_get_members(field):
        return False
    own = {child.name: child for child in field.children}
    pairs = ((own[child.name], child) for child in new.children if child.name in own)
    return all(takes_members_in_place(old, child, version) for old, child in pairs)


def numbered(field: Field, parent_id: FieldId, fresh: Iterator[int]) -> Field:
    """Assign new ids to a field and all fields below."""
    field_id = FieldId(next(fresh))
    children = tuple(numbered(child, field_id, fresh) for child in field.children)
    return replace(field, id=field_id, parent_id=parent_id, children=children)


def _may_get_members(field: Field) -> bool:
    if field.owns_column:
        return False
    is_list_of_structs = field.logical_type in ("list.struct", "large_list.struct")
    return field.logical_type == "struct" or is_list_of_structs


def _without(fields: tuple[Field, ...], gone: set[FieldId]) -> tuple[Field, ...]:
    remaining: list[Field] = []
    for field in fields:
        if field.id in gone:
            continue
        children = _without(field.children, gone)
        if field.children and not children:
            continue
        if field.logical_type == "map" and children != field.children:
            entries = children[0].children
            if len(entries) < _KEY_AND_VALUE:
                raise InvalidRequestError(
                    f"column {field.name} is a map, which needs both key and value"
                )
        remaining.append(field if children == field.children else field.with_children(children))
    return tuple(remaining)


def _joined(first: Alteration | None, second: Alteration) -> Alteration:
    if first is None:
        return second
    return Alteration(
        path=second.path,
        name=first.name if second.name is None else second.name,
        nullable=first.nullable if second.nullable is None else second.nullable,
        retyped=first.retyped if second.retyped is None else second.retyped,
    )


def _altered(field: Field, by_id: dict[FieldId, Alteration], fresh: Iterator[int]) -> Field:
    children = tuple(_altered(child, by_id, fresh) for child in field.children)
    after = field if children == field.children else field.with_children(children)
    change = by_id.get(field.id)
    if change is None:
        return after
    if change.retyped is not None:
        # Fields below are replaced with the type, and so are their changes.
        retyped = numbered(change.retyped, field.parent_id, fresh)
        after = replace(retyped, name=field.name, nullable=field.nullable)
    return replace(
        after,
        name=after.name if change.name is None else change.name,
        nullable=after.nullable if change.nullable is None else change.nullable,
    )


def _changed(before: Field, after: Field, retyped: set[FieldId]) -> tuple[Field, Field] | None:
    """Reduce a field before and after alterations to the parts with another type."""
    if before.id in retyped:
        return before, after
    below = [
        _changed(old, new, retyped)
        for old, new in zip(before.children, after.children, strict=True)
    ]
    remaining = [pair for pair in below if pair is not None]
    if not remaining:
        return None
    if before.owns_column:
        where = quote_segment(before.name)
        msg = f"column {where} is packed, so the types of its fields cannot change"
        raise UnsupportedError(msg, column=where, action="Add a column with the other type.")
    return (
        before.with_children(tuple(old for old, _ in remaining)),
        after.with_children(tuple(new for _, new in remaining)),
    )


def _ensure_names(fields: tuple[Field, ...]) -> None:
    for field in fields:
        if "." in field.name:
            msg = f"the name of column {field.name!r} cannot contain `.`"
            raise InvalidNameError(msg, column=field.name)
        if field.name in RESERVED_NAMES:
            raise InvalidNameError(f"column name {field.name!r} is reserved", column=field.name)
    _ensure_unique(fields, ())


def _ensure_unique(fields: tuple[Field, ...], path: tuple[Field, ...]) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            where = _shown((*path, field))
            raise InvalidNameError(f"Duplicate field name {where!r} in schema", column=where)
        seen.add(field.name)
        _ensure_unique(field.children, (*path, field))


def _shown(path: tuple[Field, ...]) -> str:
    return join_path(field.name for field in path)


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
    by_name = {field.name: field for field in schema.fields}
    fresh = itertools.count(first_id)
    before: list[Field] = []
    after: list[Field] = []
    in_place: list[Field] = []
    for field in new.fields:
        old = by_name.get(field.name)
        if old is None or takes_members_in_place(old, field, version):
            in_place.append(field)
            continue
        merged = numbered(_merged(old, field, ()), old.parent_id, fresh)
        before.append(old)
        after.append(merged)
        by_name[field.name] = merged
    return Growth(
        schema=replace(schema, fields=tuple(by_name[field.name] for field in schema.fields)),
        before=replace(schema, fields=tuple(before)),
        after=replace(schema, fields=tuple(after)),
        in_place=replace(new, fields=tuple(in_place)),
    )


def missing_members(table: Schema, data: Schema) -> Schema:
    """Reduce the fields of data to those that the columns of a table do not have."""
    by_name = {field.name: field for field in table.fields}
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
