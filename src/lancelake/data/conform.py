"""Users' values -> values as data files keep them: one type per field, no forbidden nulls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.file_schema import BLOB_VALUE, file_field
from lancelake.data.retype import retype, struct_of
from lancelake.errors import SchemaMismatchError
from lancelake.format import jsonb
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema, quote_segment

# A fixed-size list has no offsets.
_OWN_BUFFERS_OF_LISTS = {pa.list_(pa.null(), 1).id: 1}


@dataclass(frozen=True)
class Conformer:
    """Turns batches of data that fits `schema` into batches for the codec."""

    schema: Schema
    version: FileVersion

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the schema, or name the column whose values do not fit."""
        arrays = [
            _Values(self.version, (field.name,)).conform(field, batch.column(field.name))
            for field in self.schema.fields
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    @cached_property
    def _target(self) -> pa.Schema:
        """The file's schema, but for blobs, whose values are yet to be stored."""
        return pa.schema(
            [
                pa.field(f.name, BLOB_VALUE) if f.is_blob_v2 else file_field(f)
                for f in self.schema.fields
            ]
        )


@dataclass(frozen=True, slots=True)
class _Values:
    """The values at one path."""

    version: FileVersion
    path: tuple[str, ...]

    def conform(self, field: Field, array: pa.Array, parent: pa.Array | None = None) -> pa.Array:
        """Return the values as `field` keeps them; below a null `parent` anything may lie."""
        opened = array.storage if isinstance(array, pa.ExtensionArray) else array
        target = file_field(field).type
        if pa.types.is_null(opened.type) and field.logical_type != "null":
            opened = pa.nulls(len(opened), target)
        valid = self._without_forbidden_nulls(field, opened, parent)
        if field.is_json:
            return self._json(valid)
        if field.is_blob_v2:
            return self._blob(valid)
        if not field.children:
            return self._cast(valid, target)
        if field.logical_type == "struct":
            return self._struct(field, valid, parent)
        if field.logical_type == "map":
            return self._map(field, valid, target)
        return self._list(field, valid, target)

    def _below(self, name: str) -> _Values:
        return _Values(self.version, (*self.path, name))

    def _struct(self, field: Field, array: pa.StructArray, parent: pa.Array | None) -> pa.Array:
        if self.version is FileVersion.V2_0 and array.null_count:
            raise SchemaMismatchError(
                f"column {self._where} has a null struct, which data files 2.0 cannot hold",
                path=self._where,
                action='Write with data_storage_version="2.1" or later.',
            )
        positions = {member.name: i for i, member in enumerate(array.type)}
        outer = array if array.null_count else parent
        children = [
            self._below(child.name).conform(child, array.field(positions[child.name]), outer)
            for child in field.children
        ]
        return struct_of(children, [file_field(child) for child in field.children], array)

    def _map(self, field: Field, array: pa.MapArray, target: pa.MapType) -> pa.Array:
        (entries,) = field.children
        key, value = entries.children
        tight = tightened(array)
        within = self._below(entries.name)
        keys = within._below(key.name).conform(key, tight.values.field(0))
        items = within._below(value.name).conform(value, tight.values.field(1))
        pairs = pa.StructArray.from_arrays(
            [keys, items], fields=[target.key_field, target.item_field]
        )
        return _relisted(tight, target, pairs)

    def _list(self, field: Field, array: pa.Array, target: pa.DataType) -> pa.Array:
        (child,) = field.children
        same_kind = self._cast(array, _like(target, array.type.value_field))
        if pa.types.is_fixed_size_list(target):
            size = target.list_size
            values = same_kind.values.slice(same_kind.offset * size, len(same_kind) * size)
            inner = self._below(child.name).conform(child, values)
            mask = same_kind.is_null() if same_kind.null_count else None
            return pa.FixedSizeListArray.from_arrays(inner, type=target, mask=mask)
        tight = tightened(same_kind)
        return _relisted(tight, target, self._below(child.name).conform(child, tight.values))

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
                f"values of column {self._where} do not fit type {target}: {error}",
                path=self._where,
                expected=str(target),
                found=str(array.type),
            ) from error

    def _json(self, array: pa.Array) -> pa.Array:
        if pa.types.is_large_binary(array.type):
            return array
        try:
            return jsonb.encode_array(array)
        except SchemaMismatchError as error:
            raise SchemaMismatchError(
                f"column {self._where} has a value that is not JSON: {error.problem}",
                path=self._where,
                action="Fix the text.",
            ) from error

    def _without_forbidden_nulls(
        self, field: Field, array: pa.Array, parent: pa.Array | None
    ) -> pa.Array:
        """Refuse nulls in a required column; below null parents, make them any value."""
        nulls = array.null_count
        if field.nullable or not nulls:
            return array
        seen = array.is_null() if parent is None else pc.and_(array.is_null(), parent.is_valid())
        if pc.any(seen).as_py():
            raise SchemaMismatchError(
                f"column {self._where} has nulls, and the table does not allow them",
                path=self._where,
                action="Fill in the nulls, or make the column nullable.",
            )
        return _all_valid(array)

    @property
    def _where(self) -> str:
        return ".".join(quote_segment(name) for name in self.path)


def tightened(array: pa.Array) -> pa.Array:
    """Return a list or map array whose values are just those between its offsets."""
    offsets = array.offsets
    if len(array) == 0:
        return array.slice(0, 0) if len(array.values) == 0 else pa.array([], array.type)
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if array.offset == 0 and first == 0 and last == len(array.values):
        return array
    values = array.values.slice(first, last - first)
    moved = pc.subtract(offsets, pa.scalar(first, offsets.type))
    validity = array.is_valid().buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(
        array.type,
        len(array),
        [validity, moved.buffers()[1]],
        array.null_count,
        children=[values],
    )


def _relisted(array: pa.Array, target: pa.DataType, values: pa.Array) -> pa.Array:
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        target, len(array), buffers, array.null_count, array.offset, [values]
    )


def _like(target: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the kind of list that `target` is, of these items."""
    if pa.types.is_fixed_size_list(target):
        return pa.list_(item, target.list_size)
    return pa.large_list(item) if pa.types.is_large_list(target) else pa.list_(item)


def _same_shape(found: pa.DataType, target: pa.DataType) -> bool:
    """Whether only names, nullability and metadata may differ."""
    if pa.types.is_fixed_size_list(found) and pa.types.is_fixed_size_list(target):
        return bool(found.list_size == target.list_size)
    return bool(found.id == target.id)


def _dictionary(array: pa.Array, target: pa.DictionaryType) -> pa.Array:
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode().cast(target)
    # A null among the words is a null that the codec would not see.
    if array.dictionary.null_count:
        return array.dictionary_decode().dictionary_encode().cast(target)
    indices = array.indices.cast(target.index_type)
    words = array.dictionary.cast(target.value_type)
    return pa.DictionaryArray.from_arrays(indices, words)


def _all_valid(array: pa.Array) -> pa.Array:
    """Return the array with arbitrary values in place of its nulls."""
    dtype = array.type
    if pa.types.is_dictionary(dtype):
        indices = array.indices.fill_null(0)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=dtype.ordered)
    if pa.types.is_struct(dtype):
        children = [array.field(i) for i in range(dtype.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(dtype))
    children = [array.values] if pa.types.is_nested(dtype) else []
    own = _OWN_BUFFERS_OF_LISTS.get(dtype.id, 2) if children else len(array.buffers())
    buffers = [None, *array.buffers()[1:own]]
    return pa.Array.from_buffers(dtype, len(array), buffers, 0, array.offset, children)
