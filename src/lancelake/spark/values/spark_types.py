"""Types of Spark as those of Arrow.

They are stored as strings; the metadata of their field has the declared type.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import types as t

from lancelake.core.values.metadata import Field, Schema, described_schema, public_schema
from lancelake.errors import InvalidRequestError, UnsupportedError

SPARK_METADATA = b"SPARK::metadata::json"
"""Key of a field's Spark metadata, such as comments, in Arrow metadata."""

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key of the declared type."""

TypeOf = Callable[[tuple[str, ...]], pa.DataType | None]
"""The Arrow type of a column by its path; None if the table has no such column."""

_BOUNDED = re.compile(r"(char|varchar)\((\d+)\)")
_ENTRIES = 2


def bound_metadata(dtype: t.DataType) -> dict[str, str]:
    """Return the Spark metadata that records a declared type; empty for other types."""
    is_bounded = isinstance(dtype, t.CharType | t.VarcharType)
    return {_CHAR_VARCHAR: dtype.simpleString()} if is_bounded else {}


def has_bounds(dtype: t.DataType) -> bool:
    """Whether a declared type is, or contains, CHAR or VARCHAR."""
    match dtype:
        case t.CharType() | t.VarcharType():
            return True
        case t.StructType():
            return any(has_bounds(member.dataType) for member in dtype.fields)
        case t.ArrayType():
            return has_bounds(dtype.elementType)
        case t.MapType():
            return has_bounds(dtype.keyType) or has_bounds(dtype.valueType)
        case _:
            return False


def declared(shown: t.StructType, table: Schema) -> t.StructType:
    """Return columns of a table in their declared types."""
    fields = {field.name: field for field in table.fields}
    return t.StructType([declared_column(column, fields[column.name]) for column in shown.fields])


def declared_column(column: t.StructField, field: Field) -> t.StructField:
    """Return a column or a field in its declared type."""
    dtype = _declare(column.dataType, field)
    if dtype is column.dataType:
        return column
    metadata = {k: v for k, v in (column.metadata or {}).items() if k != _CHAR_VARCHAR}
    return t.StructField(column.name, dtype, column.nullable, metadata)


def _declare(dtype: t.DataType, field: Field) -> t.DataType:
    match dtype:
        case t.StringType():
            return _text_bound(field) or dtype
        case t.StructType():
            children = [(member, field.child(member.name)) for member in dtype.fields]
            members = [m if child is None else declared_column(m, child) for m, child in children]
            is_same = all(a is b for a, b in zip(members, dtype.fields, strict=True))
            return dtype if is_same else t.StructType(members)
        case t.ArrayType() if len(field.children) == 1:
            item = _declare(dtype.elementType, field.children[0])
            is_same = item is dtype.elementType
            return dtype if is_same else t.ArrayType(item, dtype.containsNull)
        case t.MapType() if (
            len(field.children) == 1 and len(field.children[0].children) == _ENTRIES
        ):
            first, second = field.children[0].children
            key, value = _declare(dtype.keyType, first), _declare(dtype.valueType, second)
            is_same = key is dtype.keyType and value is dtype.valueType
            return dtype if is_same else t.MapType(key, value, dtype.valueContainsNull)
        case _:
            return dtype


def _text_bound(field: Field) -> t.DataType | None:
    text = field.metadata.get(SPARK_METADATA.decode())
    match = _BOUNDED.fullmatch(str(json.loads(text).get(_CHAR_VARCHAR, ""))) if text else None
    if match is None:
        return None
    return (t.CharType if match[1] == "char" else t.VarcharType)(int(match[2]))


SPARK_TYPE = b"lancelake:spark_type"
"""Key of a Spark type whose values are stored as those of another type."""

VECTOR_SIZE = "arrow.fixed-size-list.size"
"""Key of the size of vectors in the Spark metadata of an array, as in the official connector."""

_ML = ("pyspark.ml.linalg", "pyspark.mllib.linalg")

_DEFAULT, _FIRST_DEFAULT = "CURRENT_DEFAULT", "EXISTS_DEFAULT"
"""Spark's keys of a default value in the metadata of a field."""

_NARROWED = (t.TimeType, t.DayTimeIntervalType)
_MOST_DIGITS = 38
_UINT64_DIGITS = 20
_SIMPLE: dict[pa.DataType, t.DataType] = {
    pa.null(): t.NullType(),
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.ByteType(),
    pa.int16(): t.ShortType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.uint8(): t.ShortType(),
    pa.uint16(): t.IntegerType(),
    pa.uint32(): t.LongType(),
    pa.uint64(): t.DecimalType(_UINT64_DIGITS, 0),
    pa.float16(): t.FloatType(),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.string(): t.StringType(),
    pa.large_string(): t.StringType(),
    pa.string_view(): t.StringType(),
    pa.binary(): t.BinaryType(),
    pa.large_binary(): t.BinaryType(),
    pa.binary_view(): t.BinaryType(),
    pa.date32(): t.DateType(),
    pa.date64(): t.DateType(),
}
_PLAIN: dict[type[t.DataType], pa.DataType] = {
    t.NullType: pa.null(),
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.StringType: pa.string(),
    t.BinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us", "UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
    t.TimeType: pa.time64("ns"),
    t.DayTimeIntervalType: pa.duration("us"),
}


def spark_schema(schema: Schema) -> t.StructType:
    """Return the Spark schema of a table."""
    return t.StructType([spark_field(f) for f in public_schema(described_schema(schema))])


def shown_schema(schema: Schema) -> t.StructType:
    """Return the columns that Spark supports; a warning names each of the others, and why."""
    fields, problems = _split_supported(schema)
    for problem in problems:
        warnings.warn(f"{problem}; the other columns are read", stacklevel=2)
    return t.StructType(fields)


def supported_schema(schema: Schema) -> t.StructType:
    """Return the columns that Spark supports."""
    return t.StructType(_split_supported(schema)[0])


def _split_supported(schema: Schema) -> tuple[list[t.StructField], list[str]]:
    fields: list[t.StructField] = []
    problems: list[str] = []
    for field in public_schema(described_schema(schema)):
        try:
            fields.append(spark_field(field))
        except UnsupportedError as error:
            problems.append(error.problem)
    return fields, problems


def spark_field(field: pa.Field, path: Sequence[str] = ()) -> t.StructField:
    """Return the Spark field of an Arrow field."""
    where = (*path, field.name)
    metadata = (field.metadata or {}).get(SPARK_METADATA)
    own = json.loads(metadata) if metadata else None
    dtype = _declared_type(field) or spark_type(field.type, where)
    return t.StructField(field.name, dtype, field.nullable, own)


def _declared_type(field: pa.Field) -> t.DataType | None:
    """Return the declared Spark type of a field, unless its values have another type by now."""
    name = (field.metadata or {}).get(SPARK_TYPE)
    if name is None:
        return None
    dtype = json.loads(name)
    if isinstance(dtype, dict):
        return _user_type(field, dtype)
    shape = {"name": field.name, "type": dtype, "nullable": True, "metadata": {}}
    declared_type = t.StructField.fromJson(shape).dataType
    same = isinstance(declared_type, _NARROWED) and arrow_type(declared_type) == field.type
    return declared_type if same else None


def _user_type(field: pa.Field, shape: dict[str, object]) -> t.DataType | None:
    """Return a user-defined type, unless its values have another type by now.

    Metadata of a table must not run code: apart from the types of Spark ML, only classes that this
    process has already imported are used.
    """
    module, _, name = str(shape.get("pyClass", "")).rpartition(".")
    home = importlib.import_module(module) if module in _ML else sys.modules.get(module)
    kind = getattr(home, name, None)
    if not isinstance(kind, type) or not issubclass(kind, t.UserDefinedType):
        return None
    user_type = kind()
    return user_type if arrow_type(user_type).equals(field.type) else None


def spark_type(dtype: pa.DataType, path: Sequence[str] = ()) -> t.DataType:
    """Return the Spark type of an Arrow type."""
    if isinstance(dtype, pa.BaseExtensionType):
        return spark_type(dtype.storage_type, path)
    simple = _SIMPLE.get(dtype)
    if simple is not None:
        return simple
    nested = _nested_type(dtype, path)
    return nested if nested is not None else _parametric(dtype, path)


def _nested_type(dtype: pa.DataType, path: Sequence[str]) -> t.DataType | None:
    if pa.types.is_struct(dtype):
        return t.StructType([spark_field(field, path) for field in dtype])
    if pa.types.is_map(dtype):
        key, value = (spark_field(f, path).dataType for f in (dtype.key_field, dtype.item_field))
        return t.MapType(key, value, dtype.item_field.nullable)
    if _is_list(dtype):
        item = dtype.value_field
        return t.ArrayType(spark_field(item, path).dataType, item.nullable)
    if pa.types.is_dictionary(dtype):
        return spark_type(dtype.value_type, path)
    return None


def _is_list(dtype: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(is_kind(dtype) for is_kind in kinds)


def _parametric(dtype: pa.DataType, path: Sequence[str]) -> t.DataType:
    if pa.types.is_fixed_size_binary(dtype):
        return t.BinaryType()
    if pa.types.is_decimal(dtype) and dtype.precision <= _MOST_DIGITS and dtype.scale >= 0:
        return t.DecimalType(max(dtype.precision, dtype.scale), dtype.scale)
    if pa.types.is_timestamp(dtype):
        return t.TimestampNTZType() if dtype.tz is None else t.TimestampType()
    if pa.types.is_duration(dtype):
        return t.DayTimeIntervalType()
    if pa.types.is_time(dtype):
        return t.TimeType()
    where = ".".join(path)
    raise UnsupportedError(
        f"column {where} has type {dtype}, which Spark does not support",
        column=where,
        action="Read the other columns with lancelake.dataset, or cast this one first.",
    )


def nullable_schema(schema: t.StructType) -> t.StructType:
    """Return the same columns; they and their nested values may be null."""
    return t.StructType([nullable_field(field) for field in schema.fields])


def nullable_field(field: t.StructField) -> t.StructField:
    """Return the same field; it and its nested values may be null."""
    return t.StructField(field.name, _nullable(field.dataType), True, field.metadata)


def _nullable(dtype: t.DataType) -> t.DataType:
    match dtype:
        case t.StructType():
            return nullable_schema(dtype)
        case t.ArrayType():
            return t.ArrayType(_nullable(dtype.elementType), True)
        case t.MapType():
            return t.MapType(_nullable(dtype.keyType), _nullable(dtype.valueType), True)
        case _:
            return dtype


def default_of(field: t.StructField) -> str | None:
    """Return the default value of a column, in Spark SQL; None without one."""
    return (field.metadata or {}).get(_DEFAULT)


def with_default(metadata: Mapping[str, object], sql: str | None) -> dict[str, object]:
    """Return the metadata of a field with a default value in Spark SQL; None removes it."""
    others = {
        key: value for key, value in metadata.items() if key not in (_DEFAULT, _FIRST_DEFAULT)
    }
    # Spark ignores a default without a value for the rows that existed before. Tables never need
    # that value: their rows are filled when the column is added.
    return others if sql is None else {**others, _DEFAULT: sql, _FIRST_DEFAULT: "NULL"}


def arrow_schema(schema: t.StructType) -> pa.Schema:
    """Return the Arrow schema of a Spark schema, including field metadata."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def stored_schema(schema: t.StructType) -> pa.Schema:
    """Return the Arrow schema of a table with this Spark schema: sized arrays are vectors."""
    return pa.schema([_stored_field(field) for field in schema.fields])


def _stored_field(field: t.StructField) -> pa.Field:
    stored = arrow_field(field)
    size = (field.metadata or {}).get(VECTOR_SIZE)
    return stored if size is None else stored.with_type(_vector(stored.type, size, [field.name]))


def arrow_field(field: t.StructField, path: Sequence[str] = ()) -> pa.Field:
    """Return the Arrow field of a Spark field."""
    where = (*path, field.name)
    metadata = {**(field.metadata or {}), **bound_metadata(field.dataType)}
    stored = {SPARK_METADATA: json.dumps(metadata).encode()} if metadata else {}
    dtype = arrow_type(field.dataType, where)
    if _needs_name(field.dataType, dtype):
        stored[SPARK_TYPE] = field.dataType.json().encode()
    return pa.field(field.name, dtype, field.nullable, stored or None)


def _needs_name(dtype: t.DataType, stored: pa.DataType) -> bool:
    """Whether the type of Spark does not follow from the stored type alone."""
    if isinstance(dtype, t.UserDefinedType):
        return True
    return isinstance(dtype, _NARROWED) and spark_type(stored) != dtype


def _vector(dtype: pa.DataType, size: object, path: Sequence[str]) -> pa.DataType:
    """Return a list as vectors of one size."""
    text = str(size)
    if not pa.types.is_list(dtype) or not text.isdecimal() or int(text) < 1:
        where = ".".join(path)
        problem = f"column {where} of type {dtype} cannot be a vector of size {text}"
        action = "Declare an array of numbers, and a size of at least 1."
        raise InvalidRequestError(problem, column=where, option=VECTOR_SIZE, action=action)
    return pa.list_(dtype.value_field, int(text))


def _item(name: str, dtype: t.DataType, path: Sequence[str], *, nullable: bool) -> pa.Field:
    """Return the field of list items or map entries."""
    stored = arrow_type(dtype, (*path, name))
    metadata = {SPARK_TYPE: dtype.json().encode()} if _needs_name(dtype, stored) else {}
    if bound := bound_metadata(dtype):
        metadata[SPARK_METADATA] = json.dumps(bound).encode()
    return pa.field(name, stored, nullable, metadata or None)


def arrow_type(dtype: t.DataType, path: Sequence[str] = ()) -> pa.DataType:
    """Return the Arrow type of a Spark type."""
    match dtype:
        case t.StructType():
            return pa.struct([arrow_field(field, path) for field in dtype.fields])
        case t.ArrayType():
            return pa.list_(_item("element", dtype.elementType, path, nullable=dtype.containsNull))
        case t.MapType():
            key = _item("key", dtype.keyType, path, nullable=False)
            value = _item("value", dtype.valueType, path, nullable=dtype.valueContainsNull)
            return pa.map_(key, value)
        case t.CharType() | t.VarcharType():
            return pa.string()
        case t.UserDefinedType():
            return arrow_type(dtype.sqlType(), path)
        case t.DecimalType():
            return pa.decimal128(dtype.precision, dtype.scale)
        case _:
            return _plain(dtype, path)


def _plain(dtype: t.DataType, path: Sequence[str]) -> pa.DataType:
    stored = next((arrow for cls, arrow in _PLAIN.items() if isinstance(dtype, cls)), None)
    # Text with a collation would be compared by its bytes afterwards.
    is_collated = isinstance(dtype, t.StringType) and dtype != t.StringType()
    if stored is not None and not is_collated:
        return stored
    where = ".".join(path)
    kind = dtype.simpleString()
    problem = f"column {where} has type {kind}, which the Lance format does not support"
    action = "Cast the column, for example to a string, before writing it."
    raise UnsupportedError(problem, column=where, action=action)
