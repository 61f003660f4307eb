"""ALTER TABLE: columns, properties, keys."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.table import Table
from lancelake.core.values.metadata import (
    KEY,
    POSITION,
    FrozenMap,
    MapUpdate,
    Schema,
    Snapshot,
    join_path,
    key_entries,
    key_names,
    public_schema,
    with_field_metadata,
)
from lancelake.core.values.reports import ensure_not_clustering
from lancelake.core.values.tasks import Engine
from lancelake.core.values.writes import ColumnChange
from lancelake.errors import InternalError, InvalidRequestError, NotFoundError, UnsupportedError
from lancelake.spark.values.spark_types import (
    SPARK_METADATA,
    VECTOR_SIZE,
    arrow_field,
    arrow_schema,
    with_default,
)

_NAME = "lancelake:primary_key_name"
"""Field metadata of key columns: the name of the constraint."""

_UNNAMED = "primary_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimaryKey:
    """A primary key constraint: its name, and its columns in key order."""

    name: str
    columns: tuple[str, ...]


def primary_key(schema: Schema) -> PrimaryKey | None:
    """Return the primary key of a table; None without one."""
    names = key_names(schema)
    if not names:
        return None
    first = next(field for field in schema.fields if field.name == names[0])
    name = first.metadata.get(_NAME, _UNNAMED.encode())
    return PrimaryKey(name=name.decode(), columns=names)


def not_null(schema: t.StructType, key: PrimaryKey) -> t.StructType:
    """Return a schema in which the columns of a key are NOT NULL."""
    return t.StructType(
        [
            t.StructField(f.name, f.dataType, f.nullable and f.name not in key.columns, f.metadata)
            for f in schema.fields
        ]
    )


def with_primary_key(schema: Schema, key: PrimaryKey) -> Schema:
    """Declare the primary key of a new table."""
    ids = {field.name: field.id for field in schema.fields}
    updates = {
        ids[name]: MapUpdate(entries=FrozenMap(dict(entries)))
        for name, entries in key_entries(key.columns, {_NAME: key.name}).items()
    }
    return with_field_metadata(schema, updates)


def add_primary_key(base: Snapshot, key: PrimaryKey) -> Snapshot:
    """Declare the primary key of a table, whose columns must be NOT NULL."""
    own = primary_key(base.manifest.schema)
    if own is not None:
        raise InvalidRequestError(
            f"the table already has the primary key {own.name} ({', '.join(own.columns)})",
            table=base.location.uri,
            version=base.version,
            action=f"Drop it first: ALTER TABLE ... DROP CONSTRAINT {own.name}.",
        )
    try:
        return Table(base).declare_primary_key(key.columns, {_NAME: key.name})
    except InvalidRequestError as error:
        column = error.facts.get("column")
        if column is not None:
            error.next_step = f"ALTER TABLE ... ALTER COLUMN {column} SET NOT NULL."
        raise


def drop_constraint(base: Snapshot, name: str, *, may_be_missing: bool) -> Snapshot:
    """Drop the primary key by its name; the columns stay NOT NULL."""
    own = primary_key(base.manifest.schema)
    if own is None or own.name.lower() != name.lower():
        if may_be_missing:
            return base
        own_text = "it has none" if own is None else f"it has {own.name}"
        raise NotFoundError(
            f"the table has no constraint {name}; {own_text}",
            table=base.location.uri,
            version=base.version,
        )
    gone = dict.fromkeys((KEY, POSITION, _NAME))
    return Table(base).update_field_metadata(dict.fromkeys(own.columns, gone))


Path = tuple[str, ...]
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column: null in every row, or filled with its default value."""

    path: Path
    field: t.StructField
    filled_with: pa.RecordBatch | None = None
    """One row with the value of the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column to drop; a missing one may be ignored."""

    path: Path
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """A column to move after another; None moves it to the front."""

    path: Path
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """The comment of a column."""

    path: Path
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDefault:
    """The default value of a column, in Spark SQL; None drops it."""

    path: Path
    sql: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropConstraint:
    """A constraint to drop; a missing one may be ignored."""

    name: str
    may_be_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty:
    """A table property to set; None removes it."""

    key: str
    value: str | None


Change = (
    AddColumn
    | DropColumn
    | MoveColumn
    | Comment
    | SetDefault
    | SetProperty
    | ColumnChange
    | PrimaryKey
    | DropConstraint
)


def alter_table(base: Snapshot, changes: Sequence[Change], engine: Engine) -> Snapshot:
    """Apply changes in order, with one commit for each kind."""
    _ensure_possible(base, changes)
    for _, same in itertools.groupby(changes, key=type):
        base = _apply(base, list(same), engine)
    return base


def _ensure_possible(base: Snapshot, changes: Sequence[Change]) -> None:
    """Refuse changes that are known to fail before the first one is committed."""
    for change in changes:
        if isinstance(change, MoveColumn) and len(change.path) > 1:
            raise UnsupportedError(
                f"{join_path(change.path)} cannot be moved: only top-level columns can",
                column=join_path(change.path),
            )
    dropped = {c.path[0] for c in changes if isinstance(c, DropColumn) and len(c.path) == 1}
    if dropped >= set(base.manifest.schema.names) and len(dropped) < len(changes):
        raise UnsupportedError(
            "REPLACE COLUMNS would remove the values of all columns",
            table=base.location.uri,
            version=base.version,
            action="Use DROP COLUMN and ADD COLUMN.",
        )


def drop_columns(base: Snapshot, paths: Sequence[str]) -> Snapshot:
    """Drop columns and struct fields; a struct keeps at least one field."""
    ensure_not_clustering(base, paths)
    Table(base).columns.ensure_structs_stay(paths)
    return Table(base).columns.drop(paths)


def _apply(base: Snapshot, changes: list[Change], engine: Engine) -> Snapshot:
    match changes[0]:
        case ColumnChange():
            return _alter_columns(base, _all(ColumnChange, changes), engine)
        case SetProperty():
            pairs = {change.key: change.value for change in _all(SetProperty, changes)}
            return Table(base).update_config(pairs)
        case DropColumn():
            return _drop_columns(base, _all(DropColumn, changes))
        case AddColumn():
            return _add_columns(base, _all(AddColumn, changes), engine)
        case _:
            return functools.reduce(_apply_one, changes, base)


def _all(kind: type[Kind], changes: list[Change]) -> list[Kind]:
    return [change for change in changes if isinstance(change, kind)]


def _apply_one(base: Snapshot, change: Change) -> Snapshot:
    match change:
        case Comment():
            return _set_comment(base, change)
        case MoveColumn():
            return _move(base, change)
        case SetDefault():
            return _set_default(base, change)
        case PrimaryKey():
            return add_primary_key(base, change)
        case DropConstraint():
            return drop_constraint(base, change.name, may_be_missing=change.may_be_missing)
        case AddColumn() | DropColumn() | SetProperty() | ColumnChange():
            raise InternalError(f"{type(change).__name__} is made together with others of its kind")
        case _:
            assert_never(change)


def _add_columns(base: Snapshot, changes: list[AddColumn], engine: Engine) -> Snapshot:
    """Add null columns in one commit, and those with a default value in one each."""
    plain = [c.field for c in changes if c.filled_with is None and len(c.path) == 1]
    if plain:
        base = Table(base).columns.add_null(arrow_schema(t.StructType(plain)))
    for change in changes:
        if change.filled_with is None:
            if len(change.path) > 1:
                members = pa.schema([_wrap(base, change)])
                base = Table(base).columns.add_null_members(members, engine=engine)
            continue
        if len(change.path) > 1:
            where = join_path(change.path)
            problem = f"field {where} of a struct cannot have a default value"
            raise UnsupportedError(problem, column=where)
        base = Table(base).columns.add_constant(change.filled_with, engine=engine)
        if not change.field.nullable:
            required = ColumnChange(path=join_path(change.path), nullable=False)
            base = Table(base).columns.alter([required], engine=engine)
    return base


def _alter_columns(base: Snapshot, changes: list[ColumnChange], engine: Engine) -> Snapshot:
    """Alter columns; a comment is kept when the type changes."""
    ensure_not_clustering(base, [c.path for c in changes if c.name is not None])
    key = SPARK_METADATA.decode()
    metadata = {c.path: _spark_metadata(base, c.path) for c in changes if c.data_type is not None}
    after = Table(base).columns.alter(changes, engine=engine)
    lost = {
        path: {key: text}
        for path, text in metadata.items()
        if text and not _spark_metadata(after, path)
    }
    return Table(after).update_field_metadata(lost) if lost else after


def _spark_metadata(base: Snapshot, path: str) -> str | None:
    text = dict(base.manifest.schema.resolve(path)[-1].metadata).get(SPARK_METADATA.decode())
    return text.decode() if isinstance(text, bytes) else text


def _wrap(base: Snapshot, change: AddColumn) -> pa.Field:
    """Return a new field in the structs, lists and maps around it, without other fields."""
    if not change.field.nullable:
        where = join_path(change.path)
        raise InvalidRequestError(f"new column {where} must be nullable", column=where)
    top = public_schema(base.manifest.schema).field(change.path[0])
    return _nest(top, change.path[1:], arrow_field(change.field))


def _nest(parent: pa.Field, path: Path, member: pa.Field) -> pa.Field:
    dtype = parent.type
    if pa.types.is_struct(dtype):
        inner = member if len(path) == 1 else _nest(dtype.field(path[0]), path[1:], member)
        return parent.with_type(pa.struct([inner]))
    if pa.types.is_map(dtype):
        inner = _nest(dtype.item_field, path[1:], member)
        return parent.with_type(pa.map_(dtype.key_field, inner))
    inner = _nest(dtype.value_field, path[1:], member)
    if pa.types.is_fixed_size_list(dtype):
        return parent.with_type(pa.list_(inner, dtype.list_size))
    make = pa.large_list if pa.types.is_large_list(dtype) else pa.list_
    return parent.with_type(make(inner))


def _drop_columns(base: Snapshot, changes: list[DropColumn]) -> Snapshot:
    names = set(base.manifest.schema.names)
    gone = [join_path(c.path) for c in changes if not (c.may_be_missing and c.path[0] not in names)]
    return drop_columns(base, gone) if gone else base


def _set_comment(base: Snapshot, change: Comment) -> Snapshot:
    path = join_path(change.path)
    metadata = _metadata(base, path)
    metadata.pop("comment", None)
    if change.text is not None:
        metadata["comment"] = change.text
    return _with_metadata(base, path, metadata)


def _set_default(base: Snapshot, change: SetDefault) -> Snapshot:
    path = join_path(change.path)
    return _with_metadata(base, path, with_default(_metadata(base, path), change.sql))


def _metadata(base: Snapshot, path: str) -> dict[str, object]:
    text = _spark_metadata(base, path)
    return json.loads(text) if text else {}


def _with_metadata(base: Snapshot, path: str, metadata: dict[str, object]) -> Snapshot:
    text = json.dumps(metadata) if metadata else None
    return Table(base).update_field_metadata({path: {SPARK_METADATA.decode(): text}})


def _move(base: Snapshot, change: MoveColumn) -> Snapshot:
    (name,) = change.path
    names = [other for other in base.manifest.schema.names if other != name]
    position = 0 if change.after is None else names.index(change.after) + 1
    return Table(base).columns.reorder([*names[:position], name, *names[position:]])


def with_vectors(schema: t.StructType, properties: Mapping[str, str]) -> t.StructType:
    """Return a schema with the sizes of vectors, which properties give by column.

    The property is that of the official connector: `<column>.arrow.fixed-size-list.size`.
    """
    suffix = f".{VECTOR_SIZE}"
    sizes = {
        key.removesuffix(suffix): value for key, value in properties.items() if key.endswith(suffix)
    }
    unknown = sorted(set(sizes) - set(schema.fieldNames()))
    if unknown:
        raise InvalidRequestError(
            f"property {unknown[0]}{suffix} names a column that the table does not have",
            option=unknown[0] + suffix,
        )
    return t.StructType([_set_size(field, sizes.get(field.name)) for field in schema.fields])


def _set_size(field: t.StructField, size: str | None) -> t.StructField:
    if size is None:
        return field
    metadata = {**(field.metadata or {}), VECTOR_SIZE: size}
    return t.StructField(field.name, field.dataType, field.nullable, metadata)
