"""Conversion of users' values to the types of data files, with null checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.arrays.hidden_nulls import all_valid
from lancelake.data.arrays.retype import retype, struct_of
from lancelake.data.arrays.text import InvalidText, is_text, valid_text
from lancelake.data.arrays.tight_lists import rebuilt_list, tightened, without_offset
from lancelake.data.file_schema import BLOB_VALUE, file_field
from lancelake.errors import SchemaMismatchError
from lancelake.format import jsonb
from lancelake.format.column_path import join_path
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Field, Schema


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
        arrow=pa.field(field.name, BLOB_VALUE) if field.is_blob_v2 else file_field(field),
        where=join_path(here),
        children=children,
        refuses_null=refuses_null,
        text=text,
        # The codec fails on some slices of nested values, so they are copied.
        is_plain=not (refuses_null or is_special or field.children),
    )


def _like(target: pa.DataType, item: pa.Field) -> pa.DataType:
    """Return the list type of `target` with these items."""
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
    # The codec would not recognize a null among the dictionary's values.
    if array.dictionary.null_count:
        return array.dictionary_decode().dictionary_encode().cast(target)
    if array.type.equals(target):
        return array
    indices = array.indices.cast(target.index_type)
    words = array.dictionary.cast(target.value_type)
    return pa.DictionaryArray.from_arrays(indices, words)
