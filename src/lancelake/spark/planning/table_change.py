"""Convert Spark's Java table changes to our own values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.types import _parse_datatype_json_string

from lancelake.errors import UnsupportedError
from lancelake.spark.catalog.alter import (
    AddColumn,
    Change,
    Comment,
    DropColumn,
    DropConstraint,
    MoveColumn,
    SetDefault,
    SetProperty,
    path_text,
)
from lancelake.spark.options.table_properties import ensure_changeable
from lancelake.spark.planning.constraints import constraint_key
from lancelake.spark.types import arrow_schema, arrow_type, with_default
from lancelake.table.columns.alter import ColumnChange
from lancelake.table.compact.clustering import CLUSTER_BY, cluster_text


def changes_of(change: Any, spark: SparkSession) -> list[Change]:
    """Convert one change; adding a column at a position is two changes.

    The session evaluates default values.
    """
    kind = str(change.getClass().getSimpleName())
    if kind == "AddColumn":
        return _added(change, tuple(change.fieldNames()), spark)
    if kind.endswith("Column") or kind.startswith("UpdateColumn"):
        return _of_column(change, kind)
    match kind:
        case "SetProperty" | "RemoveProperty":
            value = change.value() if kind == "SetProperty" else None
            ensure_changeable(change.property())
            return [SetProperty(key=change.property(), value=value)]
        case "AddConstraint":
            return [constraint_key(change.constraint())]
        case "DropConstraint":
            return [DropConstraint(name=change.name(), may_be_missing=bool(change.ifExists()))]
        case "ClusterBy":
            columns = [list(reference.fieldNames()) for reference in change.clusteringColumns()]
            return [SetProperty(key=CLUSTER_BY, value=cluster_text(columns))]
        case _:
            raise UnsupportedError(f"{kind} is not supported by Lance tables")


def _of_column(change: Any, kind: str) -> list[Change]:
    path = tuple(change.fieldNames())
    text = path_text(path)
    match kind:
        case "UpdateColumnDefaultValue":
            sql = change.newDefaultValue()
            return [SetDefault(path=path, sql=sql or None)]
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


def _added(change: Any, path: tuple[str, ...], spark: SparkSession) -> list[Change]:
    comment, default = change.comment(), change.defaultValue()
    metadata: dict[str, object] = {} if comment is None else {"comment": comment}
    sql = None if default is None else str(default.getSql())
    metadata = with_default(metadata, sql)
    nullable = bool(change.isNullable())
    field = t.StructField(path[-1], _type(change.dataType()), nullable, metadata or None)
    row = None if sql is None else _evaluated(spark, field, sql)
    added: list[Change] = [AddColumn(path=path, field=field, filled_with=row)]
    if change.position() is not None:
        added.append(MoveColumn(path=path, after=_after(change.position())))
    return added


def _evaluated(spark: SparkSession, field: t.StructField, sql: str) -> pa.RecordBatch:
    """Return a row with the value of a default."""
    value = f.expr(sql).cast(field.dataType).alias(field.name)
    nullable = t.StructField(field.name, field.dataType, True, field.metadata)
    schema = arrow_schema(t.StructType([nullable]))
    found = spark.range(1).select(value).toArrow().combine_chunks()
    column = found.column(0).combine_chunks().cast(schema.field(0).type)
    return pa.RecordBatch.from_arrays([column], schema=schema)


def _type(dtype: Any) -> t.DataType:
    return _parse_datatype_json_string(json.dumps(json.loads(dtype.json())))


def _after(position: Any) -> str | None:
    is_first = position.getClass().getSimpleName() == "First"
    return None if is_first else str(position.column())
