"""Rows of a frame, fitted to the columns of a table.

Spark itself decides wherever its classes are available. On Spark Connect and in the processes of
plain data sources they are not.

A session stores rows by its own rules, including `spark.sql.storeAssignmentPolicy` and
`spark.sql.caseSensitive`. The processes of plain data sources have no session; they match names
case-insensitively and only convert numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.core.values.metadata import Schema, Snapshot, described, public_field, quoted_name
from lancelake.errors import SchemaMismatchError, UnsupportedError
from lancelake.spark.jvm.gateway import is_classic, open_gateway
from lancelake.spark.jvm.proxy import sentence_of
from lancelake.spark.values.spark_types import (
    declared_column,
    default_of,
    has_bounds,
    nullable_field,
    shown_schema,
    spark_field,
)

_NUMBERS = (t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.FloatType, t.DoubleType)
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)
_TEXTS = (t.StringType, t.CharType, t.VarcharType)


class Rule(Enum):
    """Allowed conversions."""

    NUMBERS = "numbers"
    """Numbers only: other conversions depend on the session, such as its time zone."""

    ANSI = "ansi"
    STRICT = "strict"


def ensure_storable(data: t.StructField, table: t.StructField, rule: Rule) -> None:
    """Refuse values that the writer must cast explicitly."""
    if not _storable(data.dataType, table.dataType, rule):
        given, wanted = data.dataType.simpleString(), table.dataType.simpleString()
        raise SchemaMismatchError(
            f"column {table.name} of type {wanted} does not accept values of type {given}",
            path=table.name,
            expected=wanted,
            found=given,
            action="Cast the column before writing it.",
        )


def _storable(data: t.DataType, table: t.DataType, rule: Rule) -> bool:
    if isinstance(data, t.UserDefinedType):
        return _storable(data.sqlType(), table, rule)
    if isinstance(data, t.NullType) or data == table:
        return True
    match data, table:
        case t.StructType(), t.StructType():
            by_name = {field.name.lower(): field.dataType for field in table.fields}
            pairs = [(f.dataType, by_name.get(f.name.lower())) for f in data.fields]
            # Fields that the table lacks are refused by name elsewhere.
            return all(b is None or _storable(a, b, rule) for a, b in pairs)
        case t.ArrayType(), t.ArrayType():
            return _storable(data.elementType, table.elementType, rule)
        case t.MapType(), t.MapType():
            keys = _storable(data.keyType, table.keyType, rule)
            return keys and _storable(data.valueType, table.valueType, rule)
        case _:
            return _atomic(data, table, rule)


def _atomic(data: t.DataType, table: t.DataType, rule: Rule) -> bool:
    if isinstance(data, _TEXTS) and isinstance(table, _TEXTS):
        return True
    is_number = isinstance(data, t.NumericType) and isinstance(table, t.NumericType)
    if is_number:
        return rule is not Rule.STRICT or _widens(data, table)
    if isinstance(data, t.DayTimeIntervalType) and isinstance(table, t.DayTimeIntervalType):
        return True
    if rule is Rule.NUMBERS:
        return False
    if isinstance(table, _TEXTS):
        return isinstance(data, t.AtomicType) and not isinstance(data, t.BinaryType)
    is_time = isinstance(data, _TIMES) and isinstance(table, _TIMES)
    return is_time and (rule is not Rule.STRICT or isinstance(data, t.DateType))


def _widens(data: t.DataType, table: t.DataType) -> bool:
    """Whether every value of a number type is a value of another, as in Spark's upcasts."""
    if isinstance(data, t.DecimalType):
        whole = table.precision - table.scale if isinstance(table, t.DecimalType) else -1
        is_wide = isinstance(table, t.DecimalType) and table.scale >= data.scale
        return is_wide and whole >= data.precision - data.scale
    if isinstance(table, t.DecimalType):
        digits: dict[type[t.DataType], int] = {
            t.ByteType: 3,
            t.ShortType: 5,
            t.IntegerType: 10,
            t.LongType: 20,
        }
        return table.precision - table.scale >= digits.get(type(data), 99)
    return _NUMBERS.index(type(data)) <= _NUMBERS.index(type(table))


def within_bounds(value: Column, dtype: t.DataType, name: str) -> Column:
    """Return values in the lengths of a declared type; too long ones fail when they are computed.

    Blanks are added to CHAR, and removed where they alone exceed the length.
    """
    if not has_bounds(dtype):
        return value
    match dtype:
        case t.CharType() | t.VarcharType():
            most = dtype.length
            failure = f.raise_error(f.lit(_too_long(name, most)))
            is_long = f.length(f.rtrim(value)) > most
            kept = f.when(is_long, failure).otherwise(value.substr(1, most))
            return f.rpad(kept, most, " ") if isinstance(dtype, t.CharType) else kept
        case t.StructType():
            members = [
                within_bounds(value.getField(m.name), m.dataType, f"{name}.{m.name}").alias(m.name)
                for m in dtype.fields
            ]
            return f.when(value.isNotNull(), f.struct(*members))
        case t.ArrayType():
            return f.transform(value, lambda v: within_bounds(v, dtype.elementType, name))
        case t.MapType():
            keys = f.transform_keys(value, lambda k, _: within_bounds(k, dtype.keyType, name))
            return f.transform_values(keys, lambda _, v: within_bounds(v, dtype.valueType, name))
        case _:
            return value


def arrow_within_bounds(values: pa.Array, dtype: t.DataType, name: str) -> pa.Array:
    """Return values in the lengths of a declared type, or refuse them."""
    if not has_bounds(dtype) or pa.types.is_null(values.type):
        return values
    if values.offset:
        values = pa.concat_arrays([values, values.slice(0, 0)])
    match dtype:
        case t.CharType() | t.VarcharType():
            most = dtype.length
            if pc.any(pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), most)).as_py():
                raise SchemaMismatchError(_too_long(name, most), path=name)
            kept = pc.utf8_slice_codeunits(values, 0, most)
            return pc.utf8_rpad(kept, most, " ") if isinstance(dtype, t.CharType) else kept
        case t.StructType():
            return _struct_within_bounds(values, dtype, name)
        case t.ArrayType():
            items = arrow_within_bounds(values.values, dtype.elementType, name)
            mask = values.is_null()
            return type(values).from_arrays(values.offsets, items, values.type, mask=mask)
        case t.MapType():
            keys = arrow_within_bounds(values.keys, dtype.keyType, name)
            items = arrow_within_bounds(values.items, dtype.valueType, name)
            mask = values.is_null()
            return pa.MapArray.from_arrays(values.offsets, keys, items, values.type, mask=mask)
        case _:
            return values


def _struct_within_bounds(values: pa.Array, dtype: t.StructType, name: str) -> pa.Array:
    declared = {member.name.lower(): member.dataType for member in dtype.fields}
    members = [
        arrow_within_bounds(
            child, declared.get(field.name.lower(), t.NullType()), f"{name}.{field.name}"
        )
        for field, child in zip(values.type, values.flatten(), strict=True)
    ]
    return pa.StructArray.from_arrays(members, fields=list(values.type), mask=values.is_null())


def _too_long(name: str, most: int) -> str:
    return f"column {name} has text of more than {most} characters"


CASE_SENSITIVE = "spark.sql.caseSensitive"


def matched_names(
    data: Sequence[str], table: Sequence[str], *, case_sensitive: bool
) -> tuple[str, ...]:
    """Return the data's columns by the corresponding names in the table.

    A column that the table does not have keeps its name. If names of the table differ only in case,
    matching is case-sensitive.
    """
    by_lower = {name.lower(): name for name in table}
    if case_sensitive or len(by_lower) < len(table):
        return tuple(data)
    names = tuple(by_lower.get(name.lower(), name) for name in data)
    ensure_distinct(data)
    return names


def ensure_distinct(data: Sequence[str], table: Sequence[str] = ()) -> None:
    """Refuse columns whose names differ only in case, in the data or from one of the table."""
    seen = {name.lower(): name for name in table}
    known = set(table)
    for name in data:
        other = seen.setdefault(name.lower(), name)
        if name in known or other == name:
            continue
        raise SchemaMismatchError(
            f"columns {other} and {name} differ only in case, which Spark ignores by default",
            path=name,
            action=f"Rename one of them; {CASE_SENSITIVE}=true distinguishes them when reading.",
        )


_POLICY = "spark.sql.storeAssignmentPolicy"


def ensure_new_names(frame: DataFrame) -> None:
    """Refuse names for a new table that the session cannot distinguish."""
    if not is_case_sensitive(frame):
        ensure_distinct(frame.columns)


def fitted(frame: DataFrame, base: Snapshot, schema: Schema | None = None) -> DataFrame:
    """Return the rows of a frame as its session stores them in a table.

    `schema` is that of the table once fields were added to it. Columns that the table does not have
    are unchanged.
    """
    schema = base.manifest.schema if schema is None else schema
    names = matched_names(frame.columns, schema.names, case_sensitive=is_case_sensitive(frame))
    if list(names) != frame.columns:
        frame = frame.toDF(*names)
    frame = with_defaults(frame, schema)
    wanted = target_schema(schema, frame.schema)
    if all(a.dataType == b.dataType for a, b in zip(frame.schema, wanted, strict=True)):
        return frame
    if not is_classic(frame.sparkSession):
        return _cast(frame, wanted)
    from lancelake.spark.jvm.write_analysis import assigned  # noqa: PLC0415  # classic sessions

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
    match = next((field for field in table.fields if field.name == data.name), None)
    if match is None or any(f.is_blob_v1 or f.is_blob_v2 for f in match.walk()):
        return data
    try:
        shown = declared_column(spark_field(public_field(described(match))), match)
    except UnsupportedError:
        return data
    return nullable_field(shown)


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
