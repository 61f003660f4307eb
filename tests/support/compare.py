"""Semantic equality of Arrow tables, and the first difference."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

EXTENSION_NAME = b"ARROW:extension:name"
EXTENSION_METADATA = b"ARROW:extension:metadata"
UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def assert_same_table(actual: pa.Table, expected: pa.Table, *, check_schema: bool = True) -> None:
    """Raise AssertionError with the first difference in schema, length or values."""
    if check_schema:
        assert_same_schema(actual.schema, expected.schema)
    difference = table_difference(actual, expected)
    assert difference is None, difference


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """Raise AssertionError unless both hold the same multiset of rows; `pa.Table.sort_by` aside.

    Rows are matched by the columns that can be sorted, so ties must not differ elsewhere.
    """
    keys = [(name, "ascending") for name in expected.column_names if _sortable(expected, name)]
    assert_same_table(actual.sort_by(keys), expected.sort_by(keys))


def assert_same_schema(actual: pa.Schema, expected: pa.Schema) -> None:
    """Raise AssertionError unless names, types, nullability and all metadata agree."""
    left, right = plain_schema(actual), plain_schema(expected)
    assert left.equals(right, check_metadata=True), (
        f"schema differs\nactual:\n{left.to_string()}\nexpected:\n{right.to_string()}"
    )


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Spell extension types as storage type plus field metadata, whoever has registered them."""
    return pa.schema([plain_field(f) for f in schema], metadata=schema.metadata)


def plain_field(field: pa.Field) -> pa.Field:
    """Do the same for one field and its children."""
    metadata = dict(field.metadata or {})
    data_type = field.type
    if isinstance(data_type, pa.BaseExtensionType):
        metadata[EXTENSION_NAME] = data_type.extension_name.encode()
        if isinstance(data_type, pa.ExtensionType):
            metadata[EXTENSION_METADATA] = data_type.__arrow_ext_serialize__()
        data_type = data_type.storage_type
    metadata = {k: v for k, v in metadata.items() if (k, v) != (EXTENSION_METADATA, b"")}
    return pa.field(field.name, _plain_type(data_type), field.nullable, metadata or None)


def _plain_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([plain_field(f) for f in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(plain_field(data_type.key_field), plain_field(data_type.item_field))
    if pa.types.is_large_list(data_type):
        return pa.large_list(plain_field(data_type.value_field))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(plain_field(data_type.value_field), data_type.list_size)
    if pa.types.is_list(data_type):
        return pa.list_(plain_field(data_type.value_field))
    return data_type


def table_difference(actual: pa.Table, expected: pa.Table) -> str | None:
    """Say where two tables first differ in columns, length or values."""
    if actual.column_names != expected.column_names:
        return f"columns {actual.column_names} instead of {expected.column_names}"
    if actual.num_rows != expected.num_rows:
        return f"{actual.num_rows} rows instead of {expected.num_rows}"
    for index, name in enumerate(expected.column_names):
        for start, left, right in _aligned(actual.column(index), expected.column(index)):
            found = array_difference(left, right, f"{name}[{start}:{start + len(left)}]")
            if found is not None:
                return found
    return None


def _aligned(
    left: pa.ChunkedArray, right: pa.ChunkedArray
) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Cut both at the union of their chunk borders, because dictionaries differ by chunk."""
    borders = sorted(set(_borders(left)) | set(_borders(right)))
    for start, stop in itertools.pairwise(borders):
        length = stop - start
        yield start, left.slice(start, length).chunk(0), right.slice(start, length).chunk(0)


def _borders(column: pa.ChunkedArray) -> list[int]:
    return [0, *np.cumsum([len(c) for c in column.chunks], dtype=int).tolist()]


def array_difference(left: pa.Array, right: pa.Array, path: str) -> str | None:
    """Say where two arrays of equal length first differ, NaN being equal to NaN."""
    left, right = _opened(left), _opened(right)
    if left.type.id != right.type.id:
        return f"{path}: {left.type} instead of {right.type}"
    here, there = left.is_valid(), right.is_valid()
    if not here.equals(there):
        return _first(path, left, right, pc.not_equal(here, there))
    left, right = _as_list(left.drop_null()), _as_list(right.drop_null())
    if pa.types.is_struct(left.type):
        return _struct_difference(left, right, path)
    if _is_repeated(left.type):
        sizes = [pc.list_value_length(side) for side in (left, right)]
        if not sizes[0].equals(sizes[1]):
            return _first(path, left, right, pc.not_equal(*sizes))
        return array_difference(left.flatten(), right.flatten(), f"{path}.[]")
    if pa.types.is_floating(left.type):
        unequal = _unequal_floats(left, right)
        return _first(path, left, right, pa.array(unequal)) if unequal.any() else None
    if left.equals(right):
        return None
    places = (i for i in range(len(left)) if not left.slice(i, 1).equals(right.slice(i, 1)))
    place = next(places, None)
    if place is None:
        return f"{path}: {left.type} instead of {right.type}"
    return f"{path}: value {place}: {_show(left, place)} instead of {_show(right, place)}"


def _opened(array: pa.Array) -> pa.Array:
    """Replace extension arrays by storage and dictionaries by values, at every depth."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _opened(array.storage)
    if isinstance(array, pa.DictionaryArray):
        return array.dictionary_decode()
    if pa.types.is_struct(kind) and kind.num_fields:
        members = [_opened(array.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(members, [f.name for f in kind], mask=array.is_null())
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        items = _opened(array.values.slice(array.offset * size, len(array) * size))
        return pa.FixedSizeListArray.from_arrays(items, size, mask=array.is_null())
    if pa.types.is_map(kind):
        parts = (_compact(array.offsets), _opened(array.keys), _opened(array.items))
        return pa.MapArray.from_arrays(*parts, mask=array.is_null())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = type(array).from_arrays
        return make(_compact(array.offsets), _opened(array.values), mask=array.is_null())
    return array


def _compact(offsets: pa.Array) -> pa.Array:
    """Copy a slice: an array is not made from a mask and offsets that are a slice."""
    return pa.concat_arrays([offsets])


def _as_list(array: pa.Array) -> pa.Array:
    """Show a map as a list of its entries: compute functions do not take maps."""
    if not pa.types.is_map(array.type):
        return array
    entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    return pa.ListArray.from_arrays(array.offsets, entries)


def _struct_difference(left: pa.Array, right: pa.Array, path: str) -> str | None:
    names = [[f.name for f in side.type] for side in (left, right)]
    if names[0] != names[1]:
        return f"{path}: members {names[0]} instead of {names[1]}"
    for index, name in enumerate(names[0]):
        found = array_difference(left.field(index), right.field(index), f"{path}.{name}")
        if found is not None:
            return found
    return None


def _unequal_floats(left: pa.Array, right: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    values = [side.to_numpy(zero_copy_only=False) for side in (left, right)]
    bits = [v.view(UNSIGNED[v.dtype.itemsize]) for v in values]
    both_nan = np.isnan(values[0]) & np.isnan(values[1])
    unequal: np.ndarray[Any, np.dtype[np.bool_]] = (bits[0] != bits[1]) & ~both_nan
    return unequal


def _is_repeated(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(data_type)
        or pa.types.is_large_list(data_type)
        or pa.types.is_fixed_size_list(data_type)
    )


def _sortable(table: pa.Table, name: str) -> bool:
    data_type = table.schema.field(name).type
    return not (pa.types.is_nested(data_type) or isinstance(data_type, pa.BaseExtensionType))


def _first(path: str, left: pa.Array, right: pa.Array, unequal: pa.Array) -> str:
    place = pc.index(unequal, True).as_py()
    return f"{path}: value {place}: {_show(left, place)} instead of {_show(right, place)}"


def _show(array: pa.Array, place: int) -> str:
    """Print through Arrow, because Python cannot hold every timestamp."""
    return str(array.slice(place, 1)).replace("\n", " ")
