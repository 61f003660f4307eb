"""Rows of Arrow data, pandas, models and other objects."""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin

import pyarrow as pa

from lancelake.data.arrays.conform import ensure_columns
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnknownDataError

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
        dtype = _class_type(kind, field)
        if dtype is not None:
            return dtype
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


# Rows of a data frame converted at a time.
_FRAME_ROWS = 64 * 1024
# Rows of a Hugging Face data set, which may have images, converted at a time.
_HUGGING_FACE_ROWS = 1000

Data = Any  # whatever `to_reader` lists, from libraries that need not be installed


def to_reader(data: Data, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Return the rows of `data` as a stream; streams are never materialised.

    Supported are tables, batches, readers, datasets and scanners of pyarrow or objects with the
    same methods, pandas and Polars data frames, Hugging Face data sets, objects with an Arrow
    stream or array interface, a dict of columns, a list of dicts or of pydantic models, and
    iterables of batches or tables. `schema` is for data without types of its own, and for
    iterables, whose batches are cast to it; without it their first batch determines the schema.
    """
    try:
        reader = _known(data, schema)
    except UnknownDataError:
        raise
    except (pa.ArrowException, KeyError, TypeError) as error:
        msg = f"data of type {_type_name(data)} cannot be converted to Arrow batches: {error}"
        raise InvalidRequestError(msg, found=_type_name(data)) from error
    return _from_iterable(data, schema) if reader is None else reader


def _known(data: Data, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    """Return the rows of data of a known type, None for other data."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return _of_batch(data)
    match _type_name(data):
        case "pandas.DataFrame":
            return pa.Table.from_pandas(data, schema=schema).to_reader()
        case "polars.DataFrame":
            return _from_frames(data, data.iter_slices(_FRAME_ROWS))
        case "polars.LazyFrame":
            return _from_frames(data.limit(0).collect(), data.collect_batches())
        case "datasets.Dataset" | "datasets.IterableDataset":
            return _from_hugging_face(data, schema)
        case "datasets.DatasetDict" | "datasets.IterableDatasetDict" as found:
            msg = f"a {found} has several data sets: {', '.join(map(str, data))}"
            raise InvalidRequestError(msg, found=found, action="Write one of them at a time.")
        case _:
            return _streaming(data) or _from_python(data, schema)


def _streaming(data: Data) -> pa.RecordBatchReader | None:
    """Return the rows of data that has a method to stream them."""
    if hasattr(data, "scanner"):
        return data.scanner().to_reader()
    if hasattr(data, "to_reader"):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return _of_batch(pa.record_batch(data))
    return None


def _from_python(data: Data, schema: pa.Schema | None) -> pa.RecordBatchReader | None:
    if isinstance(data, Mapping):
        return _of_batch(pa.RecordBatch.from_pydict(data, schema=schema))
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        batch = pa.RecordBatch.from_pylist(data, schema=schema)
        # Arrow takes the columns from the first row, and without columns there are no rows.
        ensure_columns(batch.schema.names, len(data))
        return _of_batch(batch)
    if isinstance(data, list) and data and is_model(type(data[0])):
        return _of_batch(batch_of(data, type(data[0]), schema))
    return None


def _of_batch(batch: pa.RecordBatch) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batch.schema, [batch])


def _from_frames(empty: Data, frames: Iterable[Data]) -> pa.RecordBatchReader:
    """Stream Polars frames in the Arrow types that Polars chooses for a whole frame."""
    schema = empty.limit(0).to_arrow().schema
    batches = (batch for frame in frames for batch in frame.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _from_hugging_face(data: Data, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """Stream a Hugging Face data set: the rows that it selects, in the types of its features."""
    declared = None if data.features is None else data.features.arrow_schema
    tables = data.with_format("arrow").iter(_HUGGING_FACE_ROWS)
    return _from_iterable(tables, schema or declared)


def _from_iterable(data: Data, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if not isinstance(data, Iterable) or isinstance(data, str | bytes):
        raise UnknownDataError(
            f"Unknown data type {type(data)}",
            found=_type_name(data),
            action="Pass Arrow data, a data frame, a dict of columns, or an iterable of batches.",
        )
    batches = _batches(data)
    if schema is None:
        first = next(batches, None)
        if first is None:
            msg = "the schema of an empty iterable cannot be inferred"
            raise InvalidRequestError(msg, action="Pass a schema.")
        return pa.RecordBatchReader.from_batches(
            first.schema, _cast(itertools.chain((first,), batches), first.schema)
        )
    return pa.RecordBatchReader.from_batches(schema, _cast(batches, schema))


def _batches(data: Iterable[Data]) -> Iterator[pa.RecordBatch]:
    for item in data:
        if isinstance(item, pa.RecordBatch):
            yield item
        elif isinstance(item, pa.Table):
            yield from item.to_batches()
        else:
            msg = f"an iterable of batches contains an item of type {_type_name(item)}"
            raise SchemaMismatchError(msg, found=_type_name(item), action="Yield record batches.")


def _cast(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
            continue
        if not batch.schema.names:
            ensure_columns(schema.names, batch.num_rows)
        try:
            yield batch.cast(schema)
        except (pa.ArrowException, ValueError) as error:
            msg = f"a batch does not match the schema: {error}"
            raise SchemaMismatchError(msg, expected=str(schema), found=str(batch.schema)) from error


def _type_name(value: object) -> str:
    """Return the name of a type as its package and class."""
    kind = type(value)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"
