"""Estimates of bytes per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lancelake.data.projection import columns_of
from lancelake.data.recently_used import cached_by_identity
from lancelake.format.arrow_schema import storage_field
from lancelake.format.blobs import described
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema

_UNKNOWN_VALUE_BYTES = 64.0
_LEAST_UNKNOWN_BYTES = 20.0
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
        per_value = _bytes_per_value(fragment, file, widths, held)
        for i in columns.intersection(held):
            width = widths[i]
            values.append(per_value if width is None else width)
    return values


def stored_bytes(fragment: Fragment, widths: Widths, wanted: Schema) -> float:
    """Estimate the bytes per row that the wanted columns take in the fragment's files.

    If a file is smaller than its values, it is compressed: its size is divided in the ratio of the
    widths of its columns.
    """
    columns = {i for field in wanted.fields for i in columns_of(field)}
    total = 0.0
    for file in fragment.files:
        held = [i for i in file.fields if i in widths]
        # In a compressed file nothing may be left for columns of unknown width.
        unknown = max(_bytes_per_value(fragment, file, widths, held), _LEAST_UNKNOWN_BYTES)
        found = {i: unknown if (width := widths[i]) is None else width for i in held}
        rows, size, whole = fragment.physical_rows, file.file_size_bytes, sum(found.values())
        stored = min(1.0, size / rows / whole) if rows and size and whole else 1.0
        total += stored * sum(found[i] for i in columns.intersection(held))
    return total


def _bytes_per_value(
    fragment: Fragment, file: DataFile, widths: Widths, held: Sequence[FieldId]
) -> float:
    """Spread what fixed-width columns leave of a file's size over its other columns."""
    known = sum(widths[i] or 0.0 for i in held)
    unknown = sum(1 for i in held if widths[i] is None)
    rows, size = fragment.physical_rows or 0, file.file_size_bytes or 0
    spare = size / rows - known if size and rows else _UNKNOWN_VALUE_BYTES * unknown
    return max(spare, 0.0) / unknown if unknown else 0.0


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
