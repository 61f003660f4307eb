"""Estimates of bytes per row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lancelake.data.projection import columns_of
from lancelake.data.recently_used import cached_by_identity
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema

_UNKNOWN_VALUE_BYTES = 64.0
_SCHEMAS = 64

Widths = FrozenMap[FieldId, float | None]


@cached_by_identity(_SCHEMAS)
def column_widths(schema: Schema) -> Widths:
    """Return the bytes per row of each column, None where rows differ."""
    pairs = (pair for field in schema.fields for pair in _widths(field, repeated=False))
    return FrozenMap(dict(pairs))


def row_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row of the wanted columns.

    Fixed-width columns are known; the rest of a file's size is spread over its other columns.
    """
    return sum(value_bytes(fragment, widths, wanted))


def value_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> list[float]:
    """Estimate the bytes per row of each of the wanted columns that the fragment stores."""
    columns = {i for field in wanted.fields for i in columns_of(field)}
    values: list[float] = []
    for file in fragment.files:
        held = [i for i in file.fields if i in widths]
        known = sum(widths[i] or 0.0 for i in held)
        unknown = sum(1 for i in held if widths[i] is None)
        rows, size = fragment.physical_rows or 0, file.file_size_bytes or 0
        spare = size / rows - known if size and rows else _UNKNOWN_VALUE_BYTES * unknown
        per_value = max(spare, 0.0) / unknown if unknown else 0.0
        for i in columns.intersection(held):
            width = widths[i]
            values.append(per_value if width is None else width)
    return values


def _widths(field: Field, *, repeated: bool) -> Iterator[tuple[FieldId, float | None]]:
    if field.owns_column:
        yield field.id, None if repeated else _type_width(storage_field(described(field)).type)
        return
    below = repeated or field.logical_type != "struct"
    for child in field.children:
        yield from _widths(child, repeated=below)


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
