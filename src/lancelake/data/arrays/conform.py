"""Arrays in the form that the codec stores: types, nulls, lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lancelake.data.arrays.batches import InvalidText, is_text, retype, struct_of, valid_text
from lancelake.errors import SchemaMismatchError
from lancelake.format import jsonb, logical_types
from lancelake.format.arrow_schema import FIELD_ID
from lancelake.format.fragment import FileVersion
from lancelake.format.ids import FieldId
from lancelake.format.schema import EXTENSION_NAME, JSON, Field, Schema, join_path

BLOB_VALUE = pa.struct(
    [
        ("data", pa.large_binary()),
        ("uri", pa.string()),
        ("position", pa.uint64()),
        ("size", pa.uint64()),
    ]
)
"""A blob to write: bytes or a URI."""

# Blob values for the codec; official releases call these arrays prepared.
PREPARED_BLOB = pa.struct(
    [
        ("kind", pa.uint8()),
        ("data", pa.large_binary()),
        ("uri", pa.string()),
        ("blob_id", pa.uint32()),
        ("blob_size", pa.uint64()),
        ("position", pa.uint64()),
    ]
)


def file_schema(schema: Schema) -> pa.Schema:
    """Return the schema to open a writer with; every field carries its id."""
    return pa.schema([file_field(f) for f in schema.fields], dict(schema.metadata) or None)


def file_field(field: Field) -> pa.Field:
    """Return one column of `file_schema`."""
    metadata = dict(field.metadata) | {FIELD_ID: str(field.id).encode()}
    if field.is_json:
        metadata[EXTENSION_NAME] = JSON.encode()
    return pa.field(field.name, _type(field), field.nullable, metadata)


def column_ids(schema: Schema, version: FileVersion) -> tuple[FieldId, ...]:
    """Return the fields that own the columns of a file, in the order of the columns."""
    return tuple(owner for field in schema.fields for owner in _owners(field, version))


def _type(field: Field) -> pa.DataType:
    if field.is_blob_v2:
        return PREPARED_BLOB
    children = [file_field(child) for child in field.children]
    return logical_types.to_arrow(field.logical_type, children)


def _owners(field: Field, version: FileVersion) -> Iterator[FieldId]:
    if field.owns_column or not version.leaves_only:
        yield field.id
    if not field.owns_column:
        for child in field.children:
            yield from _owners(child, version)


def all_valid(array: pa.Array) -> pa.Array:
    """Return the array without nulls; the values in their place are unspecified."""
    dtype = array.type
    if pa.types.is_dictionary(dtype):
        return pa.DictionaryArray.from_arrays(array.indices.fill_null(0), array.dictionary)
    if pa.types.is_struct(dtype):
        children = [array.field(i) for i in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(dtype))
    children = [array.values] if pa.types.is_nested(dtype) else []
    buffers = [None, *array.buffers()[1 : _own_buffers(array)]]
    return pa.Array.from_buffers(dtype, len(array), buffers, 0, array.offset, children)


def _own_buffers(array: pa.Array) -> int:
    """Count the buffers of an array without its children."""
    if pa.types.is_fixed_size_list(array.type):
        return 1
    return 2 if pa.types.is_nested(array.type) else len(array.buffers())


def tightened(array: pa.Array) -> pa.Array:
    """Return a list or map without values that belong to none of its rows."""
    if pa.types.is_fixed_size_list(array.type):
        return _tight_fixed_size(array)
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if array.offset == 0 and first == 0 and last == len(array.values) > 0:
        return array
    moved = pc.subtract(offsets, pa.scalar(first, offsets.type))
    buffers = [_validity(array), moved.buffers()[1]]
    # Arrow for Rust rejects an empty slice from the middle of strings.
    values = array.values.slice(first, last - first) if last > first else _none_of(array)
    return pa.Array.from_buffers(array.type, len(array), buffers, children=[values])


def without_offset(array: pa.Array) -> pa.Array:
    """Return the same values in buffers of their own, if the array is a slice.

    The codec gives a struct's nulls to its fields and ignores that a field is a slice.
    """
    return pa.concat_arrays([array]) if array.offset else array


def rebuilt_list(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    """Return a list like `array`, of another type and with other values."""
    buffers = array.buffers()[: 1 if pa.types.is_fixed_size_list(target) else 2]
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )


def _tight_fixed_size(array: pa.FixedSizeListArray) -> pa.Array:
    size = array.type.list_size
    if array.offset == 0 and len(array.values) == len(array) * size:
        return array
    values = array.values.slice(array.offset * size, len(array) * size)
    return pa.Array.from_buffers(array.type, len(array), [_validity(array)], children=[values])


def _validity(array: pa.Array) -> pa.Buffer | None:
    return array.is_valid().buffers()[1] if array.null_count else None


def _none_of(array: pa.Array) -> pa.Array:
    return pa.nulls(0, array.values.type)


@dataclass(frozen=True)
class Conformer:
    """Converts batches that match `schema` into batches for the codec."""

    schema: Schema
    version: FileVersion
    text: InvalidText = InvalidText.REFUSE

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the schema, or raise for a column whose values do not fit."""
        ensure_columns(self.schema.names, batch.num_rows)
        arrays = [node.conform(batch.column(node.field.name)) for node in self._nodes]
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    @cached_property
    def _nodes(self) -> tuple[_Node, ...]:
        return tuple(_node(field, (), self.version, self.text) for field in self.schema.fields)

    @cached_property
    def _target(self) -> pa.Schema:
        """The file's schema, except for blobs, whose values are stored later."""
        return pa.schema([node.arrow for node in self._nodes])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A field, and how its values are checked and converted."""

    field: Field
    arrow: pa.Field
    where: str
    children: tuple[_Node, ...]
    refuses_null: bool
    text: InvalidText
    is_plain: bool
    """Whether values of the right type are written unchanged."""

    def conform(self, array: pa.Array, parent: pa.Array | None = None) -> pa.Array:
        """Return the values as stored; where `parent` is null, they may be anything."""
        if is_text(self.arrow.type):
            return valid_text(self._conformed(array, parent), self.where, self.text)
        return self._conformed(array, parent)

    def _conformed(self, array: pa.Array, parent: pa.Array | None) -> pa.Array:
        target = self.arrow.type
        if self.is_plain and array.type.equals(target, check_metadata=True):
            return array
        values = array.storage if isinstance(array, pa.ExtensionArray) else array
        if pa.types.is_null(values.type) and self.field.logical_type != "null":
            values = pa.nulls(len(values), target)
        values = self._without_forbidden_nulls(values, parent)
        if self.field.is_json:
            return self._json(values)
        if self.field.is_blob_v2:
            return self._blob(values)
        if not self.children:
            return self._cast(values, target)
        if self.field.logical_type == "struct":
            return self._struct(values, parent)
        if self.field.logical_type == "map":
            return self._map(values)
        return self._list(values)

    def _struct(self, array: pa.StructArray, parent: pa.Array | None) -> pa.Array:
        positions = {member.name: i for i, member in enumerate(array.type)}
        outer = array if array.null_count else parent
        members = [
            without_offset(child.conform(array.field(positions[child.field.name]), outer))
            for child in self.children
        ]
        return struct_of(members, list(self.arrow.type), array)

    def _map(self, array: pa.MapArray) -> pa.Array:
        (entries,) = self.children
        tight = tightened(array)
        members = [child.conform(tight.values.field(i)) for i, child in enumerate(entries.children)]
        fields = [self.arrow.type.key_field, self.arrow.type.item_field]
        return rebuilt_list(
            tight, self.arrow.type, pa.StructArray.from_arrays(members, fields=fields)
        )

    def _list(self, array: pa.Array) -> pa.Array:
        (item,) = self.children
        target = self.arrow.type
        same_kind = self._cast(array, _like(target, array.type.value_field))
        tight = tightened(same_kind)
        return rebuilt_list(tight, target, item.conform(tight.values))

    def _blob(self, array: pa.StructArray) -> pa.Array:
        given = {member.name: i for i, member in enumerate(array.type)}
        members = [
            self._cast(array.field(given[member.name]), member.type)
            if member.name in given
            else pa.nulls(len(array), member.type)
            for member in BLOB_VALUE
        ]
        return struct_of(members, list(BLOB_VALUE), array)

    def _cast(self, array: pa.Array, target: pa.DataType) -> pa.Array:
        try:
            if pa.types.is_dictionary(target):
                return _dictionary(array, target)
            if pa.types.is_dictionary(array.type):
                return array.dictionary_decode().cast(target)
            return retype(array, target) if _same_shape(array.type, target) else array.cast(target)
        except (pa.ArrowException, NotImplementedError) as error:
            raise SchemaMismatchError(
                f"Can't cast values of column {self.where} to type {target}: {error}",
                path=self.where,
                expected=str(target),
                found=str(array.type),
            ) from error

    def _json(self, array: pa.Array) -> pa.Array:
        if pa.types.is_large_binary(array.type):
            return array
        if is_text(array.type):
            array = valid_text(array, self.where, self.text)
        try:
            return jsonb.encode_array(array)
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"column {self.where} has a value that is not JSON: {error.problem}",
                path=self.where,
            ) from error

    def _without_forbidden_nulls(self, array: pa.Array, parent: pa.Array | None) -> pa.Array:
        """Raise for nulls that are not allowed; below null parents, replace them by any value."""
        if not self.refuses_null or not array.null_count:
            return array
        seen = array.is_null() if parent is None else pc.and_(array.is_null(), parent.is_valid())
        if not pc.any(seen).as_py():
            return all_valid(array)
        if self.field.nullable:
            problem = f"column {self.where} has a null struct, which data files 2.0 do not support"
            action = 'Write with data_storage_version="2.1" or later.'
        else:
            problem = f"column {self.where} contains null values, but is declared as non-nullable"
            action = "Fill in the nulls, or make the column nullable."
        raise SchemaMismatchError(problem, path=self.where, action=action)


def ensure_columns(names: Sequence[str], rows: int) -> None:
    """Raise for rows without columns, which no data file can store."""
    if rows and not names:
        raise SchemaMismatchError(
            f"the data has rows ({rows}) but no columns", action="Write data with columns."
        )


def _node(field: Field, path: tuple[str, ...], version: FileVersion, text: InvalidText) -> _Node:
    here = (*path, field.name)
    below = () if field.is_blob_v2 else field.children
    children = tuple(_node(child, here, version, text) for child in below)
    is_struct = field.logical_type == "struct"
    refuses_null = not field.nullable or (is_struct and version is FileVersion.V2_0)
    is_special = field.is_json or field.logical_type.startswith("dict:")
    return _Node(
        field=field,
        arrow=_arrow(field, children),
        where=join_path(here),
        children=children,
        refuses_null=refuses_null,
        text=text,
        # The codec fails on some slices of nested values, so they are copied.
        is_plain=not (refuses_null or is_special or field.children),
    )


def _arrow(field: Field, children: tuple[_Node, ...]) -> pa.Field:
    """Return the field in which a column goes to the writer, with blobs not yet stored."""
    if field.is_blob_v2:
        return pa.field(field.name, BLOB_VALUE)
    if field.logical_type == "struct" and any(node.is_blob_v2 for node in field.walk()):
        return file_field(field).with_type(pa.struct([child.arrow for child in children]))
    return file_field(field)


def _like(target: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the list type of `target` with these items."""
    if pa.types.is_fixed_size_list(target):
        return pa.list_(item, target.list_size)
    return pa.large_list(item) if pa.types.is_large_list(target) else pa.list_(item)


def _same_shape(dtype: pa.DataType, target: pa.DataType) -> bool:
    """Whether only names, nullability and metadata may differ."""
    if pa.types.is_fixed_size_list(dtype) and pa.types.is_fixed_size_list(target):
        return bool(dtype.list_size == target.list_size)
    return bool(dtype.id == target.id)


def _dictionary(array: pa.Array, target: pa.DictionaryType) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode().cast(target)
    # The codec would not recognize a null among the dictionary's values.
    if array.dictionary.null_count:
        return array.dictionary_decode().dictionary_encode().cast(target)
    if array.type.equals(target):
        return array
    indices = array.indices.cast(target.index_type)
    words = array.dictionary.cast(target.value_type)
    return pa.DictionaryArray.from_arrays(indices, words)


# Maximum number of deleted rows that are added to one batch.
_PIECE_BYTES = 32 << 20
_LEAST_ROWS = 1024

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRows:
    """Places batches of `Conformer` at the positions of a fragment's live rows."""

    schema: Schema
    version: FileVersion
    deleted: BitMap
    physical_rows: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a value for each physical row, or raise unless there is one for each live row."""
        if not self.deleted:
            yield from self._counted(batches, self.physical_rows)
            return
        live = _live_offsets(self.deleted, self.physical_rows)
        rank, end = 0, 0
        last: pa.RecordBatch | None = None
        for batch in self._counted(batches, len(live)):
            if not batch.num_rows:
                continue
            places = live[rank : rank + batch.num_rows]
            stop = int(places[-1]) + 1
            yield from self._pieces(batch, places, end, stop)
            rank, end, last = rank + batch.num_rows, stop, batch
        if last is not None:
            nothing = np.array([], dtype=np.int64)
            yield from self._pieces(last.slice(0, 1), nothing, end, self.physical_rows)

    def _counted(
        self, batches: Iterable[pa.RecordBatch], expected: int
    ) -> Iterator[pa.RecordBatch]:
        count = 0
        for batch in batches:
            count += batch.num_rows
            if count > expected:
                raise _miscounted(count, expected, "more")
            yield batch
        if count < expected:
            raise _miscounted(count, expected, "fewer")

    def _pieces(
        self, batch: pa.RecordBatch, places: Offsets, start: int, stop: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop, of which those at `places` come from the batch."""
        if stop - start == len(places):
            if len(places):
                yield batch
            return
        width = max(1, batch.nbytes // max(1, batch.num_rows))
        step = max(_LEAST_ROWS, _PIECE_BYTES // width)
        for first in range(start, stop, step):
            last = min(first + step, stop)
            low, high = np.searchsorted(places, (first, last))
            yield self._piece(batch, places[low:high] - first, int(low), last - first)

    def _piece(self, batch: pa.RecordBatch, places: Offsets, low: int, rows: int) -> pa.RecordBatch:
        sources = np.full(rows, -1, dtype=np.int64)
        sources[places] = np.arange(low, low + len(places))
        gone = sources < 0
        near = np.maximum(np.maximum.accumulate(sources), min(low, batch.num_rows - 1))
        or_null, or_near = pa.array(sources, mask=gone), pa.array(near)
        arrays = [
            self._taken(field, array, or_null, or_near)
            for field, array in zip(self.schema.fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _taken(
        self, field: Field, array: pa.Array, or_null: pa.Array, or_near: pa.Array
    ) -> pa.Array:
        is_struct = field.logical_type == "struct"
        if field.nullable and not (is_struct and self.version is FileVersion.V2_0):
            return array.take(or_null)
        if _has_own_length(array.type):
            return all_valid(array.take(or_null))
        return array.take(or_near)


def _live_offsets(deleted: BitMap, physical_rows: int) -> Offsets:
    is_live = np.ones(physical_rows, dtype=np.bool_)
    is_live[np.frombuffer(deleted.to_array(), dtype=np.uint32)] = False
    return np.flatnonzero(is_live).astype(np.int64)


def _has_own_length(dtype: pa.DataType) -> bool:
    """Whether values differ in size, so that an empty one takes no space."""
    kinds = pa.types
    is_text = kinds.is_string(dtype) or kinds.is_large_string(dtype)
    is_binary = kinds.is_binary(dtype) or kinds.is_large_binary(dtype)
    return bool(is_text or is_binary or kinds.is_list(dtype) or kinds.is_large_list(dtype))


def _miscounted(count: int, expected: int, how: str) -> SchemaMismatchError:
    problem = f"there are {how} values than rows: {expected} rows"
    if how == "fewer":
        ended = "Stream ended before producing values for all rows in dataset"
        problem = f"{ended}: {problem}, {count} values"
    action = "Pass one value for each row."
    return SchemaMismatchError(problem, expected=expected, found=count, action=action)
