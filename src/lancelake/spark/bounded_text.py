"""CHAR and VARCHAR: strings with a declared length, as columns, fields of structs and items.

They are stored as strings; the metadata of their field has the declared type.
"""

from __future__ import annotations

import json
import re

from pyspark.sql import types as t

from lancelake.format.schema import Field, Schema

SPARK_METADATA = b"SPARK::metadata::json"
"""Key of a field's Spark metadata, such as comments, in Arrow metadata."""

_CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's key of the declared type."""

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
    dtype = _declared(column.dataType, field)
    if dtype is column.dataType:
        return column
    metadata = {k: v for k, v in (column.metadata or {}).items() if k != _CHAR_VARCHAR}
    return t.StructField(column.name, dtype, column.nullable, metadata)


def _declared(dtype: t.DataType, field: Field) -> t.DataType:
    match dtype:
        case t.StringType():
            return _bound(field) or dtype
        case t.StructType():
            found = [_member(member, field.child(member.name)) for member in dtype.fields]
            is_same = all(a is b for a, b in zip(found, dtype.fields, strict=True))
            return dtype if is_same else t.StructType(found)
        case t.ArrayType() if len(field.children) == 1:
            item = _declared(dtype.elementType, field.children[0])
            is_same = item is dtype.elementType
            return dtype if is_same else t.ArrayType(item, dtype.containsNull)
        case t.MapType() if (
            len(field.children) == 1 and len(field.children[0].children) == _ENTRIES
        ):
            first, second = field.children[0].children
            key, value = _declared(dtype.keyType, first), _declared(dtype.valueType, second)
            is_same = key is dtype.keyType and value is dtype.valueType
            return dtype if is_same else t.MapType(key, value, dtype.valueContainsNull)
        case _:
            return dtype


def _member(member: t.StructField, field: Field | None) -> t.StructField:
    return member if field is None else declared_column(member, field)


def _bound(field: Field) -> t.DataType | None:
    text = field.metadata.get(SPARK_METADATA.decode())
    found = _BOUNDED.fullmatch(str(json.loads(text).get(_CHAR_VARCHAR, ""))) if text else None
    if found is None:
        return None
    return (t.CharType if found[1] == "char" else t.VarcharType)(int(found[2]))
