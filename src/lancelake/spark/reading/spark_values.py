"""Convert Arrow values to the types that Spark reads, with copies only where needed."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.arrays.retype import struct_of
from lancelake.errors import InternalError


class SparkConformer:
    """Converts batches to a schema; columns are matched by name."""

    def __init__(self, target: pa.Schema) -> None:
        self._target = target

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch in the target schema."""
        if batch.schema.equals(self._target, check_metadata=True):
            return batch
        if not len(self._target):
            return pa.RecordBatch.from_struct_array(
                pa.Array.from_buffers(pa.struct([]), batch.num_rows, [None])
            )
        columns = [conform(batch.column(field.name), field.type) for field in self._target]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)


def conform(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return values in the target type; struct fields are matched by name."""
    if isinstance(array, pa.ExtensionArray):
        return conform(array.storage, target)
    if array.type.equals(target, check_metadata=True):
        return array
    if pa.types.is_dictionary(array.type):
        return conform(array.dictionary_decode(), target)
    if pa.types.is_struct(target):
        members = [conform(_member(array, field.name), field.type) for field in target]
        return struct_of(members, list(target), array)
    if pa.types.is_map(target):
        return _map(array, target)
    if pa.types.is_list(target):
        return _list(array, target)
    # Spark has microsecond precision; finer values are truncated.
    return array.cast(target, safe=not pa.types.is_temporal(target))


def _member(array: pa.StructArray, name: str) -> pa.Array:
    position = array.type.get_field_index(name)
    if position < 0:
        raise InternalError(f"field {name} was not read")
    return array.field(position)


def _list(array: pa.Array, target: pa.ListType) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = conform(array.values, target.value_type)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [values]
    )


def _map(array: pa.MapArray, target: pa.MapType) -> pa.Array:
    keys = conform(array.keys, target.key_type)
    items = conform(array.items, target.item_type)
    fields = [target.key_field, target.item_field]
    entries = pa.StructArray.from_arrays([keys, items], fields=fields)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], array.null_count, array.offset, [entries]
    )
