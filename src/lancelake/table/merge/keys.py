"""Comparable keys: key columns normalised so that equal keys are bitwise equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.schema import Field, Schema
from lancelake.suggest import suggestion


def key_fields(on: Sequence[str], schema: Schema) -> tuple[Field, ...]:
    """Find the key columns; names are case-sensitive only if they are ambiguous otherwise."""
    fields = tuple(_found(name, schema.fields) for name in on)
    if len({field.id for field in fields}) < len(fields):
        raise InvalidRequestError(f"a key contains a column twice: {', '.join(on)}")
    for field in fields:
        comparable_type(field)
    return fields


def comparable_type(field: Field) -> pa.DataType:
    """Return the type in which values of a key column are compared."""
    found = storage_field(field).type
    if pa.types.is_dictionary(found):
        found = found.value_type
    if field.is_json or pa.types.is_nested(found) or pa.types.is_null(found):
        problem = (
            f"column {field.name} of type {field.logical_type} is not supported as a merge key"
        )
        raise UnsupportedError(
            problem, column=field.name, action="Choose a key column of another type."
        )
    if pa.types.is_float16(found):
        return pa.int16()
    if pa.types.is_floating(found):
        return pa.int64() if pa.types.is_float64(found) else pa.int32()
    return found


def is_comparable(field: Field) -> bool:
    """Whether a column can be part of a key."""
    try:
        comparable_type(field)
    except UnsupportedError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparer:
    """Normalises the values of a key column so that equal values are bitwise equal."""

    name: str
    plain: pa.DataType
    target: pa.DataType

    @staticmethod
    def of(field: Field) -> Comparer:
        """Choose the normalisation from the type of a key column."""
        plain = storage_field(field).type
        plain = plain.value_type if pa.types.is_dictionary(plain) else plain
        return Comparer(name=field.name, plain=plain, target=comparable_type(field))

    def __call__(self, values: pa.Array) -> pa.Array:
        """Return the normalised values; floats by their bits."""
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        try:
            if not values.type.equals(self.plain):
                values = _cast(values, self.plain)
        except pa.ArrowException as error:
            problem = f"Can't cast values of key column {self.name} to type {self.plain}: {error}"
            raise SchemaMismatchError(problem, path=self.name, expected=str(self.plain)) from error
        return values if self.plain.equals(self.target) else values.view(self.target)

    def whole(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a whole column normalised."""
        return pa.chunked_array([self(chunk) for chunk in column.chunks], self.target)


def shown(key: Iterable[object], fields: Sequence[Field]) -> str:
    """Return a key as text for messages."""
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
        problem = f"Merge insert key column {name!r} does not exist in schema"
        advice = suggestion(name, [f.name for f in fields], "columns")
        raise InvalidRequestError(problem, column=name, action=advice)
    return alike[0]


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    if _kind(values.type) != _kind(target):
        raise pa.ArrowInvalid(f"values of type {values.type} are of another kind")
    return values.cast(target)


def _kind(dtype: pa.DataType) -> str:
    """Return the kind of values of a type; only values of the same kind can be equal."""
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
