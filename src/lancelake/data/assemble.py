"""Assembly of the table's columns from several files; missing columns are null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.data.arrays.retype import struct_of
from lancelake.data.recently_used import RecentlyUsed
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.computed_once import computed_once
from lancelake.format.schema import Field, Schema

_CACHED = 64


@dataclass(frozen=True)
class Assembler:
    """Joins batches of the same rows, each with some of the fields of a schema."""

    schema: Schema

    @staticmethod
    def of(schema: Schema) -> Assembler:
        """Return the assembler of a schema, cached by schema."""
        # The cached value keeps its schema alive, so that no other schema gets the same id.
        return _known.get(id(schema), lambda: Assembler(schema))

    def __call__(self, parts: Sequence[pa.RecordBatch], num_rows: int) -> pa.RecordBatch:
        """Return all fields for these rows."""
        target = self._target
        if len(parts) == 1 and parts[0].schema.equals(target, check_metadata=True):
            return parts[0]
        if not self._fields:
            return empty_batch(num_rows)
        columns = []
        for node, field in zip(self._fields, target, strict=True):
            found = [part.column(node.name) for part in parts if node.name in part.schema.names]
            columns.append(_column(node, field.type, found, num_rows))
        return pa.RecordBatch.from_arrays(columns, schema=target)

    @computed_once
    def _fields(self) -> tuple[Field, ...]:
        return tuple(described(field) for field in self.schema.fields)

    @computed_once
    def _target(self) -> pa.Schema:
        return pa.schema([storage_field(field) for field in self._fields])


_known: RecentlyUsed[int, Assembler] = RecentlyUsed(_CACHED)


def empty_batch(num_rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))


def _column(field: Field, target: pa.DataType, parts: list[pa.Array], num_rows: int) -> pa.Array:
    if not parts:
        return pa.nulls(num_rows, target)
    if len(parts) == 1 and parts[0].type.equals(target):
        return parts[0]
    if pa.types.is_struct(target):
        return _struct(field, target, parts, num_rows)
    return _list(field, target, parts)


def _struct(field: Field, target: pa.StructType, parts: list[pa.Array], num_rows: int) -> pa.Array:
    children = []
    for child, child_field in zip(field.children, target, strict=True):
        found = [
            part.field(child.name) for part in parts if part.type.get_field_index(child.name) >= 0
        ]
        children.append(_column(child, child_field.type, found, num_rows))
    return struct_of(children, list(target), parts[0])


def _list(field: Field, target: pa.DataType, parts: list[pa.Array]) -> pa.Array:
    """Join lists with the same offsets and different fields."""
    first = parts[0]
    (item,) = field.children
    values = _column(item, target.value_type, [p.values for p in parts], len(first.values))
    buffers = first.buffers()[: 1 if pa.types.is_fixed_size_list(target) else 2]
    return pa.Array.from_buffers(
        target, len(first), buffers, first.null_count, first.offset, [values]
    )
