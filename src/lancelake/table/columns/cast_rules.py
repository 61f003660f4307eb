"""Allowed casts between column types, and how values are cast."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.arrays.retype import struct_of
from lancelake.data.arrays.tight_lists import rebuilt_list, tightened
from lancelake.errors import SchemaMismatchError, UnsupportedError
from lancelake.expr.literals import type_name
from lancelake.format.arrow_schema import storage_field
from lancelake.format.schema import Field

# Precision may be lost, as in official releases; a number that does not fit is an error.
_OPTIONS = {
    "allow_time_truncate": True,
    "allow_float_truncate": True,
    "allow_decimal_truncate": True,
}

# The value that Arrow names in its error.
_REFUSED = re.compile(r"value (\S+?)'? (?:not in range|truncated|was truncated)")


def ensure_castable(field: Field, target: pa.DataType, path: str) -> None:
    """Raise an error unless both types are of the same kind."""
    found = storage_field(field).type
    if field.is_json or field.is_blob_v1 or field.is_blob_v2 or not _same_kind(found, target):
        kinds = f"{_type_name(field, found)} to {type_name(target) or target}"
        msg = f'Cannot cast column "{path}" from {kinds}'
        action = "Add a column with an expression, and drop this one."
        raise UnsupportedError(msg, column=path, action=action)


def cast_column(array: pa.Array, before: Field, after: Field, path: str) -> pa.Array:
    """Cast a column; fields that exist on both sides are cast recursively."""
    if before.id != after.id:
        return _cast(array, storage_field(after).type, path)
    target = storage_field(after)
    children = [
        (cast_path(path, old), old, new)
        for old, new in zip(before.children, after.children, strict=True)
    ]
    if pa.types.is_struct(array.type):
        parts = [
            cast_column(array.field(i), old, new, where)
            for i, (where, old, new) in enumerate(children)
        ]
        return struct_of(parts, list(target.type), array)
    ((where, old, new),) = children
    tight = tightened(array)
    return rebuilt_list(tight, target.type, cast_column(tight.values, old, new, where))


def cast_path(path: str, child: Field) -> str:
    """Return the path of a child."""
    return f"{path}.{child.name}" if path else child.name


def _same_kind(found: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_dictionary(found) or pa.types.is_dictionary(target):
        return _same_kind(_words(found), _words(target))
    if _is_list(found) and _is_list(target):
        if pa.types.is_fixed_size_list(found) and pa.types.is_fixed_size_list(target):
            return bool(found.list_size == target.list_size) and _same_items(found, target)
        return _same_items(found, target)
    return any(kind(found) and kind(target) for kind in _KINDS)


def _same_items(found: pa.DataType, target: pa.DataType) -> bool:
    return _same_kind(found.value_type, target.value_type)


def _words(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _is_list(dtype: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_list(dtype) or kinds.is_large_list(dtype) or kinds.is_fixed_size_list(dtype)
    )


def _is_text(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _is_bytes(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_binary(dtype) or pa.types.is_large_binary(dtype))


def _is_point_in_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or pa.types.is_time(dtype))


_KINDS = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_duration,
    _is_point_in_time,
    _is_text,
    _is_bytes,
)


def _cast(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    try:
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_dictionary(target):
            words = pc.cast(array, options=_options(target.value_type))
            return words.dictionary_encode().cast(target)
        return pc.cast(_rounded(array, target), options=_options(target))
    except (pa.ArrowException, NotImplementedError) as error:
        name = type_name(target) or target
        value = _REFUSED.search(str(error))
        values = f"value {value[1]} to type {name}" if value else f"values to type {name}"
        raise SchemaMismatchError(
            f"Can't cast {values} in column {path}: {error}",
            path=path,
            expected=str(target),
            found=str(array.type),
            action="Choose a type that can hold all values.",
        ) from error


def _rounded(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Round decimals that lose digits, which a cast alone would truncate."""
    if not (pa.types.is_decimal(array.type) and pa.types.is_decimal(target)):
        return array
    if target.scale >= array.type.scale:
        return array
    return pc.round(array, ndigits=target.scale, round_mode="half_towards_infinity")


def _options(target: pa.DataType) -> pc.CastOptions:
    return pc.CastOptions(target, **_OPTIONS)


def _type_name(field: Field, found: pa.DataType) -> str:
    return field.logical_type if field.is_json else type_name(found) or str(found)
