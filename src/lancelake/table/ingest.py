"""Convert input data of any supported type to a stream of Arrow batches."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from lancelake.data.arrays.conform import ensure_columns
from lancelake.errors import InvalidRequestError, SchemaMismatchError, UnknownDataError
from lancelake.table import models

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
    if isinstance(data, list) and data and models.is_model(type(data[0])):
        return _of_batch(models.batch_of(data, type(data[0]), schema))
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
