"""ALTER TABLE: one commit for each kind of change."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.errors import InternalError, InvalidRequestError, UnsupportedError
from lancelake.format.arrow_schema import public_schema
from lancelake.format.column_path import join_path
from lancelake.spark.bounded_text import SPARK_METADATA
from lancelake.spark.catalog.key_constraint import PrimaryKey, add_primary_key, drop_constraint
from lancelake.spark.types import arrow_field, arrow_schema, with_default
from lancelake.table.columns.add import add_null_columns
from lancelake.table.columns.alter import ColumnChange, alter_columns
from lancelake.table.columns.constant import add_constant_columns
from lancelake.table.columns.drop import drop_columns, ensure_structs_stay, reorder_columns
from lancelake.table.columns.grow import add_null_members
from lancelake.table.compact.clustering import ensure_not_clustering
from lancelake.table.config import update_config, update_field_metadata

Path = tuple[str, ...]


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


def altered(base: Snapshot, changes: Sequence[Change], engine: Engine) -> Snapshot:
    """Apply changes in order, with one commit for each kind."""
    _ensure_possible(base, changes)
    for _, same in itertools.groupby(changes, key=type):
        base = _made(base, list(same), engine)
    return base


def _ensure_possible(base: Snapshot, changes: Sequence[Change]) -> None:
    """Refuse changes that are known to fail before the first one is committed."""
    for change in changes:
        if isinstance(change, MoveColumn) and len(change.path) > 1:
            raise UnsupportedError(
                f"{path_text(change.path)} cannot be moved: only top-level columns can",
                column=path_text(change.path),
            )
    dropped = {c.path[0] for c in changes if isinstance(c, DropColumn) and len(c.path) == 1}
    if dropped >= set(base.manifest.schema.names) and len(dropped) < len(changes):
        raise UnsupportedError(
            "REPLACE COLUMNS would remove the values of all columns",
            table=base.location.uri,
            version=base.version,
            action="Use DROP COLUMN and ADD COLUMN.",
        )


def without_columns(base: Snapshot, paths: Sequence[str]) -> Snapshot:
    """Drop columns and struct fields; a struct keeps at least one field."""
    ensure_not_clustering(base, paths)
    ensure_structs_stay(base, paths)
    return drop_columns(base, paths)


def path_text(path: Sequence[str]) -> str:
    """Return a path as text in the format's notation."""
    return join_path(path)


def _made(base: Snapshot, changes: list[Change], engine: Engine) -> Snapshot:
    if all(isinstance(change, ColumnChange) for change in changes):
        return _retyped(base, [c for c in changes if isinstance(c, ColumnChange)], engine)
    if all(isinstance(change, SetProperty) for change in changes):
        pairs = {c.key: c.value for c in changes if isinstance(c, SetProperty)}
        return update_config(base, pairs)
    if all(isinstance(change, DropColumn) for change in changes):
        return _without(base, [c for c in changes if isinstance(c, DropColumn)])
    if all(isinstance(change, AddColumn) for change in changes):
        return _added(base, [c for c in changes if isinstance(c, AddColumn)], engine)
    for change in changes:
        base = _one_made(base, change)
    return base


def _one_made(base: Snapshot, change: Change) -> Snapshot:
    match change:
        case Comment():
            return _commented(base, change)
        case MoveColumn():
            return _moved(base, change)
        case SetDefault():
            return _with_default(base, change)
        case PrimaryKey():
            return add_primary_key(base, change)
        case DropConstraint():
            return drop_constraint(base, change.name, may_be_missing=change.may_be_missing)
        case AddColumn() | DropColumn() | SetProperty() | ColumnChange():
            raise InternalError(f"{type(change).__name__} is made together with others of its kind")
        case _:
            assert_never(change)


def _added(base: Snapshot, changes: list[AddColumn], engine: Engine) -> Snapshot:
    """Add null columns in one commit, and those with a default value in one each."""
    plain = [c.field for c in changes if c.filled_with is None and len(c.path) == 1]
    if plain:
        base = add_null_columns(base, arrow_schema(t.StructType(plain)))
    for change in changes:
        if change.filled_with is None:
            if len(change.path) > 1:
                members = pa.schema([_wrapped(base, change)])
                base = add_null_members(base, members, engine=engine)
            continue
        if len(change.path) > 1:
            where = path_text(change.path)
            problem = f"field {where} of a struct cannot have a default value"
            raise UnsupportedError(problem, column=where)
        base = add_constant_columns(base, change.filled_with, engine=engine)
        if not change.field.nullable:
            required = ColumnChange(path=path_text(change.path), nullable=False)
            base = alter_columns(base, [required], engine=engine)
    return base


def _retyped(base: Snapshot, changes: list[ColumnChange], engine: Engine) -> Snapshot:
    """Alter columns; a comment is kept when the type changes."""
    ensure_not_clustering(base, [c.path for c in changes if c.name is not None])
    key = SPARK_METADATA.decode()
    said = {c.path: _said(base, c.path) for c in changes if c.data_type is not None}
    after = alter_columns(base, changes, engine=engine)
    lost = {path: {key: text} for path, text in said.items() if text and not _said(after, path)}
    return update_field_metadata(after, lost) if lost else after


def _said(base: Snapshot, path: str) -> str | None:
    text = dict(base.manifest.schema.resolve(path)[-1].metadata).get(SPARK_METADATA.decode())
    return text.decode() if isinstance(text, bytes) else text


def _wrapped(base: Snapshot, change: AddColumn) -> pa.Field:
    """Return a new field in the structs, lists and maps around it, without other fields."""
    if not change.field.nullable:
        where = path_text(change.path)
        raise InvalidRequestError(f"new column {where} must be nullable", column=where)
    top = public_schema(base.manifest.schema).field(change.path[0])
    return _around(top, change.path[1:], arrow_field(change.field))


def _around(parent: pa.Field, path: Path, member: pa.Field) -> pa.Field:
    dtype = parent.type
    if pa.types.is_struct(dtype):
        inner = member if len(path) == 1 else _around(dtype.field(path[0]), path[1:], member)
        return parent.with_type(pa.struct([inner]))
    if pa.types.is_map(dtype):
        inner = _around(dtype.item_field, path[1:], member)
        return parent.with_type(pa.map_(dtype.key_field, inner))
    inner = _around(dtype.value_field, path[1:], member)
    if pa.types.is_fixed_size_list(dtype):
        return parent.with_type(pa.list_(inner, dtype.list_size))
    make = pa.large_list if pa.types.is_large_list(dtype) else pa.list_
    return parent.with_type(make(inner))


def _without(base: Snapshot, changes: list[DropColumn]) -> Snapshot:
    names = set(base.manifest.schema.names)
    gone = [path_text(c.path) for c in changes if not (c.may_be_missing and c.path[0] not in names)]
    return without_columns(base, gone) if gone else base


def _commented(base: Snapshot, change: Comment) -> Snapshot:
    path = path_text(change.path)
    kept = _metadata(base, path)
    kept.pop("comment", None)
    if change.text is not None:
        kept["comment"] = change.text
    return _with_metadata(base, path, kept)


def _with_default(base: Snapshot, change: SetDefault) -> Snapshot:
    path = path_text(change.path)
    return _with_metadata(base, path, with_default(_metadata(base, path), change.sql))


def _metadata(base: Snapshot, path: str) -> dict[str, object]:
    text = _said(base, path)
    return json.loads(text) if text else {}


def _with_metadata(base: Snapshot, path: str, kept: dict[str, object]) -> Snapshot:
    text = json.dumps(kept) if kept else None
    return update_field_metadata(base, {path: {SPARK_METADATA.decode(): text}})


def _moved(base: Snapshot, change: MoveColumn) -> Snapshot:
    (name,) = change.path
    names = [other for other in base.manifest.schema.names if other != name]
    position = 0 if change.after is None else names.index(change.after) + 1
    return reorder_columns(base, [*names[:position], name, *names[position:]])
