"""Keys that can be compared: plain columns in which equal keys are equal in bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.schema import Field, Schema


def key_fields(on: Sequence[str], schema: Schema) -> tuple[Field, ...]:
    """Find the columns of a key; case decides only where there are two."""
    fields = tuple(_found(name, schema.fields) for name in on)
    if len({field.id for field in fields}) < len(fields):
        raise InvalidRequestError(f"a key names a column twice: {', '.join(on)}")
    for field in fields:
        comparable_type(field)
    return fields


def comparable_type(field: Field) -> pa.DataType:
    """Return the type in which values of a key column are compared."""
    found = storage_field(field).type
    if pa.types.is_dictionary(found):
        found = found.value_type
    if field.is_json or pa.types.is_nested(found) or pa.types.is_null(found):
        problem = f"column {field.name} of type {field.logical_type} cannot be part of a key"
        raise UnsupportedError(problem, column=field.name, action="Use a key of another type.")
    if pa.types.is_float16(found):
        return pa.int16()
    if pa.types.is_floating(found):
        return pa.int64() if pa.types.is_float64(found) else pa.int32()
    return found


def comparable(column: pa.ChunkedArray | pa.Array, field: Field) -> pa.ChunkedArray | pa.Array:
    """Return the values of a key column as they are compared; floats by their bits."""
    target = comparable_type(field)
    plain = storage_field(field).type
    plain = plain.value_type if pa.types.is_dictionary(plain) else plain
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    made = [_comparable(chunk, plain, target, field) for chunk in chunks]
    return pa.chunked_array(made, target) if isinstance(column, pa.ChunkedArray) else made[0]


def shown(key: Iterable[object], fields: Sequence[Field]) -> str:
    """Return a key as people read it."""
    return ", ".join(f"{f.name} = {v!r}" for f, v in zip(fields, key, strict=True))


def is_complete(columns: Sequence[pa.Array]) -> pa.Array:
    """Whether no part of a key is null."""
    mask = pc.is_valid(columns[0])
    for column in columns[1:]:
        mask = pc.and_(mask, pc.is_valid(column))
    return mask


def _found(name: str, fields: tuple[Field, ...]) -> Field:
    exact = [f for f in fields if f.name == name]
    alike = exact or [f for f in fields if f.name.lower() == name.lower()]
    if len(alike) != 1:
        known = ", ".join(f.name for f in fields)
        problem = f"Merge insert key column {name!r} does not exist in schema, which has: {known}"
        raise InvalidRequestError(problem, column=name)
    return alike[0]


def _comparable(chunk: pa.Array, plain: pa.DataType, target: pa.DataType, field: Field) -> pa.Array:
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    try:
        if _kind(chunk.type) != _kind(plain):
            raise pa.ArrowInvalid(f"values of type {chunk.type} are of another kind")
        values = chunk if chunk.type.equals(plain) else chunk.cast(plain)
    except pa.ArrowException as error:
        problem = f"values of key column {field.name} do not fit type {plain}: {error}"
        raise SchemaMismatchError(problem, path=field.name, expected=str(plain)) from error
    return values if plain.equals(target) else values.view(target)


def _kind(dtype: pa.DataType) -> str:
    """Return what kind of values a type holds; those of one kind may be equal."""
    types = pa.types
    if types.is_null(dtype) or types.is_boolean(dtype):
        return str(dtype)
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "number"
    if types.is_temporal(dtype):
        return "duration" if types.is_duration(dtype) else "time"
    return "text" if _is_text(dtype) else "bytes"


def _is_text(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )
