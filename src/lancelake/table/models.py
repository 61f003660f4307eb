"""Arrow schemas and rows of pydantic models."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

import pyarrow as pa

from lancelake.errors import UnknownDataError

_PLAIN: Mapping[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.utf8(),
    bool: pa.bool_(),
    bytes: pa.binary(),
    date: pa.date32(),
}


def is_model(kind: object) -> bool:
    """Whether a value is a class of pydantic models; pydantic need not be installed."""
    return isinstance(kind, type) and any(
        (base.__module__, base.__qualname__) == ("pydantic.main", "BaseModel")
        for base in kind.__mro__
    )


def schema_of(model: type) -> pa.Schema:
    """Return the columns of a model: nullable are those whose annotation includes None.

    Raises UnknownDataError for an annotation without an Arrow type.
    """
    return pa.schema(_fields(model))


def batch_of(rows: Any, model: type, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """Return a list of instances of one model as a batch of its schema, or of another one.

    Raises UnknownDataError for anything but a list, and for instances of other classes: those of a
    subclass may have columns that the schema does not have.
    """
    if not isinstance(rows, list):
        problem = f"rows of a pydantic model must be a list, not {type(rows).__name__}"
        raise UnknownDataError(problem, found=type(rows).__name__)
    for number, row in enumerate(rows):
        if type(row) is not model:
            raise UnknownDataError(
                f"row {number} must be an instance of {model.__name__} exactly, "
                f"not of {type(row).__name__}",
                expected=model.__name__,
                found=type(row).__name__,
            )
    values = [_value(row.model_dump()) for row in rows]
    return pa.RecordBatch.from_pylist(values, schema=schema or schema_of(model))


def is_nullable(annotation: Any) -> bool:
    """Whether a column of this annotation may have nulls."""
    if _is_vector(annotation):
        return bool(annotation.nullable())
    return type(None) in _options(annotation)


def _fields(model: Any) -> list[pa.Field]:
    return [
        pa.field(name, _arrow_type(field.annotation, field), is_nullable(field.annotation))
        for name, field in model.model_fields.items()
    ]


def _arrow_type(annotation: Any, field: Any) -> pa.DataType:
    options = [option for option in _options(annotation) if option is not type(None)]
    kind = options[0] if len(options) == 1 else annotation
    if get_origin(kind) is Annotated:
        return _arrow_type(get_args(kind)[0], field)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is datetime:
        return pa.timestamp("us", tz=(field.json_schema_extra or {}).get("tz"))
    if get_origin(kind) in (list, tuple):
        return _list_type(kind, field)
    if isinstance(kind, type):
        found = _class_type(kind, field)
        if found is not None:
            return found
    raise UnknownDataError(
        f"the annotation {annotation} of a pydantic model has no Arrow type: unsupported type",
        found=str(annotation),
    )


def _list_type(kind: Any, field: Any) -> pa.DataType:
    items = {item for item in get_args(kind) if item is not Ellipsis}
    if len(items) != 1:
        raise UnknownDataError(
            f"unsupported type {kind} in a pydantic model: its items must have one type",
            found=str(kind),
            action="Specify the type of the items, as in list[int].",
        )
    return pa.list_(_arrow_type(items.pop(), field))


def _class_type(kind: Any, field: Any) -> pa.DataType | None:
    if is_model(kind):
        return pa.struct(_fields(kind))
    if _is_vector(kind):
        vector = pa.list_(kind.value_arrow_type(), kind.dim())
        is_several = getattr(kind, "is_multi_vector", None)
        return pa.list_(vector) if is_several is not None and is_several() else vector
    if issubclass(kind, Enum):
        return _enum_type(kind, field)
    return None


def _enum_type(kind: type[Enum], field: Any) -> pa.DataType:
    """Return the type of the values; text is dictionary-encoded, mixed values are text."""
    types_of_values = {type(member.value) for member in kind}
    if len(types_of_values) != 1:
        return pa.utf8()
    only = types_of_values.pop()
    return pa.dictionary(pa.int32(), pa.utf8()) if only is str else _arrow_type(only, field)


def _is_vector(kind: Any) -> bool:
    """Whether a class describes vectors of a fixed size, as those of pylance and LanceDB do."""
    return isinstance(kind, type) and hasattr(kind, "dim") and hasattr(kind, "value_arrow_type")


def _options(annotation: Any) -> Sequence[Any]:
    """Return the members of a union; of another annotation, the annotation."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return get_args(annotation) if is_union else (annotation,)


def _value(value: Any) -> Any:
    """Return a value in which enumeration members are replaced with their values."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_value(inner) for inner in value]
    return value
