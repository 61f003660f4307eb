"""ALTER TABLE: one commit for each kind of change."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.engine.port import Engine
from lancelake.errors import InvalidRequestError, UnsupportedError
from lancelake.format.column_path import join_path
from lancelake.format.evolution import resolve
from lancelake.spark.types import SPARK_METADATA, arrow_schema
from lancelake.table.columns.add import add_null_columns
from lancelake.table.columns.alter import ColumnChange, alter_columns
from lancelake.table.columns.drop import drop_columns, reorder_columns
from lancelake.table.config import update_config, update_field_metadata

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A new column, null in every row."""

    path: Path
    field: t.StructField


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
class SetProperty:
    """A table property to set; None removes it."""

    key: str
    value: str | None


Change = AddColumn | DropColumn | MoveColumn | Comment | SetProperty | ColumnChange


def altered(base: Snapshot, changes: Sequence[Change], engine: Engine) -> Snapshot:
    """Apply changes in order, with one commit for each kind."""
    for _, same in itertools.groupby(changes, key=type):
        base = _made(base, list(same), engine)
    return base


def without_columns(base: Snapshot, paths: Sequence[str]) -> Snapshot:
    """Drop columns and struct fields; a struct keeps at least one field."""
    schema = base.manifest.schema
    trails = [resolve(schema, path) for path in paths]
    gone = {trail[-1].id for trail in trails}
    for trail in trails:
        parent = trail[-2] if len(trail) > 1 else None
        if parent is None or gone & {field.id for field in trail[:-1]}:
            continue
        if all(child.id in gone for child in parent.children):
            whole = path_text([field.name for field in trail[:-1]])
            raise InvalidRequestError(
                f"column {whole} would be left without fields",
                table=base.location.uri,
                version=base.version,
                column=whole,
                action=f"Drop {whole} itself, or keep a field.",
            )
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
        fields = [_wrapped(c) for c in changes if isinstance(c, AddColumn)]
        return add_null_columns(base, arrow_schema(t.StructType(fields)))
    for change in changes:
        if isinstance(change, Comment):
            base = _commented(base, change)
        elif isinstance(change, MoveColumn):
            base = _moved(base, change)
    return base


def _retyped(base: Snapshot, changes: list[ColumnChange], engine: Engine) -> Snapshot:
    """Alter columns; a comment is kept when the type changes."""
    key = SPARK_METADATA.decode()
    said = {c.path: _said(base, c.path) for c in changes if c.data_type is not None}
    after = alter_columns(base, changes, engine=engine)
    lost = {path: {key: text} for path, text in said.items() if text and not _said(after, path)}
    return update_field_metadata(after, lost) if lost else after


def _said(base: Snapshot, path: str) -> str | None:
    text = dict(base.manifest.schema.resolve(path)[-1].metadata).get(SPARK_METADATA.decode())
    return text.decode() if isinstance(text, bytes) else text


def _wrapped(change: AddColumn) -> t.StructField:
    """Return a struct field wrapped in its parent structs."""
    field = change.field
    for name in reversed(change.path[:-1]):
        field = t.StructField(name, t.StructType([field]))
    return field


def _without(base: Snapshot, changes: list[DropColumn]) -> Snapshot:
    names = set(base.manifest.schema.names)
    gone = [path_text(c.path) for c in changes if not (c.may_be_missing and c.path[0] not in names)]
    return without_columns(base, gone) if gone else base


def _commented(base: Snapshot, change: Comment) -> Snapshot:
    path = path_text(change.path)
    key = SPARK_METADATA.decode()
    text = _said(base, path)
    kept = json.loads(text) if text else {}
    kept.pop("comment", None)
    if change.text is not None:
        kept["comment"] = change.text
    return update_field_metadata(base, {path: {key: json.dumps(kept) if kept else None}})


def _moved(base: Snapshot, change: MoveColumn) -> Snapshot:
    if len(change.path) > 1:
        raise UnsupportedError(
            f"{path_text(change.path)} cannot be moved: only top-level columns can",
            column=path_text(change.path),
        )
    (name,) = change.path
    names = [other for other in base.manifest.schema.names if other != name]
    position = 0 if change.after is None else names.index(change.after) + 1
    return reorder_columns(base, [*names[:position], name, *names[position:]])
