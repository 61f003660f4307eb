"""Cast and check rows for an existing table: names, types and text lengths.

A session stores rows by its own rules, including `spark.sql.storeAssignmentPolicy` and
`spark.sql.caseSensitive`. The processes of plain data sources have no session; they match names
case-insensitively and only convert numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.commit.snapshot import Snapshot
from lancelake.errors import SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import public_field
from lancelake.format.blobs import described
from lancelake.format.column_path import quoted_name
from lancelake.format.schema import Schema
from lancelake.spark.bounded_text import declared_column, has_bounds
from lancelake.spark.jvm.failures import sentence_of
from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.types import default_of, shown_schema, spark_field
from lancelake.spark.writing.column_names import CASE_SENSITIVE, ensure_distinct, matched_names
from lancelake.spark.writing.storable import Rule, ensure_storable
from lancelake.spark.writing.text_lengths import arrow_within_bounds, within_bounds

_POLICY = "spark.sql.storeAssignmentPolicy"


def ensure_new_names(frame: DataFrame) -> None:
    """Refuse names for a new table that the session cannot distinguish."""
    if not is_case_sensitive(frame):
        ensure_distinct(frame.columns)


def fitted(frame: DataFrame, base: Snapshot) -> DataFrame:
    """Return the rows of a frame as its session stores them in a table.

    Columns that the table does not have are unchanged.
    """
    schema = base.manifest.schema
    names = matched_names(frame.columns, schema.names, case_sensitive=is_case_sensitive(frame))
    if list(names) != frame.columns:
        frame = frame.toDF(*names)
    frame = with_defaults(frame, schema)
    wanted = target_schema(schema, frame.schema)
    if all(a.dataType == b.dataType for a, b in zip(frame.schema, wanted, strict=True)):
        return frame
    if not is_classic(frame.sparkSession):
        return _cast(frame, wanted)
    from lancelake.spark.jvm.store_assignment import assigned  # noqa: PLC0415  # classic sessions

    gateway = open_gateway(frame.sparkSession)
    try:
        return assigned(gateway, frame, wanted, f"lance.`{base.location.uri}`")
    except AnalysisException as error:
        raise SchemaMismatchError(
            sentence_of(error),
            table=base.location.uri,
            version=base.version,
            action="Cast the column before writing it.",
        ) from error


def with_defaults(frame: DataFrame, schema: Schema) -> DataFrame:
    """Add the columns with a default value that a frame does not have."""
    known = set(frame.columns)
    for field in shown_schema(schema).fields:
        sql = default_of(field)
        if sql is not None and field.name not in known:
            frame = frame.withColumn(field.name, f.expr(sql).cast(field.dataType))
    return frame


def target_schema(table: Schema, data: t.StructType) -> t.StructType:
    """Return the data's columns in the types of the table.

    All are nullable here; the writer checks for nulls.
    """
    return t.StructType([_target(table, field) for field in data.fields])


def _target(table: Schema, data: t.StructField) -> t.StructField:
    found = next((field for field in table.fields if field.name == data.name), None)
    if found is None or any(f.is_blob_v1 or f.is_blob_v2 for f in found.walk()):
        return data
    try:
        shown = declared_column(spark_field(public_field(described(found))), found)
    except UnsupportedError:
        return data
    return t.StructField(shown.name, _nullable(shown.dataType), True, shown.metadata)


def _nullable(dtype: t.DataType) -> t.DataType:
    match dtype:
        case t.StructType():
            members = [
                t.StructField(m.name, _nullable(m.dataType), True, m.metadata) for m in dtype.fields
            ]
            return t.StructType(members)
        case t.ArrayType():
            return t.ArrayType(_nullable(dtype.elementType), True)
        case t.MapType():
            return t.MapType(_nullable(dtype.keyType), _nullable(dtype.valueType), True)
        case _:
            return dtype


def is_case_sensitive(frame: DataFrame) -> bool:
    """Whether the session of a frame distinguishes names by case."""
    return str(frame.sparkSession.conf.get(CASE_SENSITIVE, "false")).lower() == "true"


def _cast(frame: DataFrame, wanted: t.StructType) -> DataFrame:
    """Apply on Spark Connect the casts of Spark's analyzer on a classic session."""
    policy = str(frame.sparkSession.conf.get(_POLICY, "ansi")).lower()
    # Spark supports the third policy, LEGACY, only for its own file formats.
    rule = Rule.STRICT if policy == Rule.STRICT.value else Rule.ANSI
    columns: list[Column] = []
    for data, table in zip(frame.schema.fields, wanted.fields, strict=True):
        ensure_storable(data, table, rule)
        value = f.col(quoted_name(data.name))
        columns.append(_bounded(value, data, table).alias(data.name))
    return frame.select(*columns)


def _bounded(value: Column, data: t.StructField, table: t.StructField) -> Column:
    if data.dataType == table.dataType:
        return value
    return within_bounds(value.cast(_unbounded(table.dataType)), table.dataType, table.name)


def _unbounded(dtype: t.DataType) -> t.DataType:
    """Return a declared type with strings of any length."""
    match dtype:
        case t.CharType() | t.VarcharType():
            return t.StringType()
        case t.StructType():
            kept = [t.StructField(m.name, _unbounded(m.dataType), m.nullable) for m in dtype.fields]
            return t.StructType(kept)
        case t.ArrayType():
            return t.ArrayType(_unbounded(dtype.elementType), dtype.containsNull)
        case t.MapType():
            key, value = _unbounded(dtype.keyType), _unbounded(dtype.valueType)
            return t.MapType(key, value, dtype.valueContainsNull)
        case _:
            return dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRows:
    """Converts batches of a plain data source for a table."""

    schema: t.StructType
    """The data's columns by the table's names."""

    bounds: tuple[t.StructField, ...] = ()
    """Columns that are or contain bounded text, in their declared types."""

    @staticmethod
    def into(base: Snapshot | None, data: t.StructType) -> PlainRows:
        """Return the conversion of rows for a version, or refuse them."""
        if base is None:
            return PlainRows(schema=data)
        own = base.manifest.schema
        names = matched_names(data.fieldNames(), own.names, case_sensitive=False)
        renamed = t.StructType(
            [
                t.StructField(name, field.dataType, field.nullable, field.metadata)
                for name, field in zip(names, data.fields, strict=True)
            ]
        )
        bounds: list[t.StructField] = []
        for given, wanted in zip(renamed, target_schema(own, renamed), strict=True):
            ensure_storable(given, wanted, Rule.NUMBERS)
            if has_bounds(wanted.dataType):
                bounds.append(wanted)
        return PlainRows(schema=renamed, bounds=tuple(bounds))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches with the table's names and lengths."""
        names = self.schema.fieldNames()
        for batch in batches:
            rows = batch if batch.schema.names == names else batch.rename_columns(names)
            for field in self.bounds:
                position = names.index(field.name)
                column = arrow_within_bounds(rows.column(position), field.dataType, field.name)
                rows = rows.set_column(position, rows.schema.field(position), column)
            yield rows
