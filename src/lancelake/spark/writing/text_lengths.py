"""Lengths of CHAR and VARCHAR values, where Spark's own checks are not available."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from lancelake.errors import SchemaMismatchError
from lancelake.spark.bounded_text import has_bounds


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
