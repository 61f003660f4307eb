"""How many bytes a row takes, before it is read."""

from __future__ import annotations

import pyarrow as pa

from lancelake.data.projection import split
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Field, Schema

_UNKNOWN_VALUE_BYTES = 64.0


def row_bytes(fragment: Fragment, schema: Schema, wanted: Schema) -> float:
    """Estimate the bytes per row of the wanted columns.

    Fixed-width columns are known; what is left of a file's size is spread over its other columns.
    """
    total = 0.0
    for part in split(fragment, wanted):
        everything = split(Fragment(id=fragment.id, files=(part.file,)), schema)
        whole = everything[0].fields if everything else part.fields
        rows = fragment.physical_rows or 0
        size = part.file.file_size_bytes or 0
        known, unknown = _known_bytes(whole), _count_unknown(whole)
        spare = size / rows - known if size and rows else _UNKNOWN_VALUE_BYTES * unknown
        per_value = max(spare, 0.0) / unknown if unknown else 0.0
        total += _known_bytes(part.fields) + per_value * _count_unknown(part.fields)
    return total


def _known_bytes(fields: tuple[Field, ...]) -> float:
    return sum(_fixed_width(f) or 0.0 for f in fields)


def _count_unknown(fields: tuple[Field, ...]) -> int:
    return sum(1 for f in fields if _fixed_width(f) is None)


def _fixed_width(field: Field) -> float | None:
    return _type_width(storage_field(described(field)).type)


def _type_width(dtype: pa.DataType) -> float | None:
    if pa.types.is_null(dtype):
        return 0.0
    if pa.types.is_struct(dtype):
        parts = [_type_width(dtype.field(i).type) for i in range(dtype.num_fields)]
        return None if None in parts else sum(p or 0.0 for p in parts)
    if pa.types.is_fixed_size_list(dtype):
        inner = _type_width(dtype.value_type)
        return None if inner is None else inner * dtype.list_size
    if pa.types.is_dictionary(dtype):
        return _type_width(dtype.index_type)
    try:
        return float(dtype.bit_width) / 8
    except ValueError:
        return None
