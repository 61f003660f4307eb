"""Convert Spark's Java table changes to our own values."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import types as t
from pyspark.sql.types import _parse_datatype_json_string

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.alter import (
    AddColumn,
    Change,
    Comment,
    DropColumn,
    MoveColumn,
    SetProperty,
    path_text,
)
from lancelake.spark.options.table_properties import ensure_changeable
from lancelake.spark.types import arrow_type
from lancelake.table.columns.alter import ColumnChange


def changes_of(change: Any) -> list[Change]:
    """Convert one change; adding a column at a position is two changes."""
    kind = str(change.getClass().getSimpleName())
    if kind in ("SetProperty", "RemoveProperty"):
        value = change.value() if kind == "SetProperty" else None
        ensure_changeable(change.property())
        return [SetProperty(key=change.property(), value=value)]
    if not hasattr(change, "fieldNames"):
        raise UnsupportedError(f"{kind} is not supported by Lance tables")
    path = tuple(change.fieldNames())
    text = path_text(path)
    match kind:
        case "AddColumn":
            return _added(change, path)
        case "DeleteColumn":
            return [DropColumn(path=path, may_be_missing=bool(change.ifExists()))]
        case "RenameColumn":
            return [ColumnChange(path=text, name=change.newName())]
        case "UpdateColumnType":
            return [ColumnChange(path=text, data_type=arrow_type(_type(change.newDataType())))]
        case "UpdateColumnNullability":
            return [ColumnChange(path=text, nullable=bool(change.nullable()))]
        case "UpdateColumnComment":
            return [Comment(path=path, text=change.newComment())]
        case "UpdateColumnPosition":
            return [MoveColumn(path=path, after=_after(change.position()))]
        case _:
            raise UnsupportedError(f"{kind} of {text} is not supported by Lance tables")


def namespace_change(change: Any) -> tuple[str, str | None]:
    """Convert a change of a namespace's properties; a removed property has no value."""
    is_set = str(change.getClass().getSimpleName()) == "SetProperty"
    return str(change.property()), str(change.value()) if is_set else None


def _added(change: Any, path: tuple[str, ...]) -> list[Change]:
    if change.defaultValue() is not None:
        raise UnsupportedError(f"column {path_text(path)} cannot have a default value")
    comment = change.comment()
    metadata = None if comment is None else {"comment": comment}
    nullable = bool(change.isNullable())
    field = t.StructField(path[-1], _type(change.dataType()), nullable, metadata)
    added: list[Change] = [AddColumn(path=path, field=field)]
    if change.position() is not None:
        added.append(MoveColumn(path=path, after=_after(change.position())))
    return added


def _type(dtype: Any) -> t.DataType:
    return _parse_datatype_json_string(json.dumps(json.loads(dtype.json())))


def _after(position: Any) -> str | None:
    is_first = position.getClass().getSimpleName() == "First"
    return None if is_first else str(position.column())
