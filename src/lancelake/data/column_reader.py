"""What readers of data files have in common: bytes by range, and columns by path."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lancelake.caches import CacheKind, RecentlyUsed
from lancelake.data.arrays.batches import ensure_same_kind, retype, struct_of
from lancelake.errors import CorruptTableError
from lancelake.format.fragment import DataFile, FileVersion, Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.ids import FieldId
from lancelake.format.schema import Field, Schema
from lancelake.storage.store import ObjectStore
from lancelake.storage.table_files import FileAt, TableFiles


class ByteSource(Protocol):
    """A file that can be read in ranges."""

    @property
    def name(self) -> str:
        """Name of the file in errors."""

    def size_bytes(self) -> int:
        """Length of the file."""

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes, or raise CorruptTableError when the file ends earlier."""


@dataclass(frozen=True)
class StoreSource:
    """A file in a store."""

    store: ObjectStore
    path: str
    known_size_bytes: int | None = None

    @property
    def name(self) -> str:
        """The path within the table."""
        return self.path

    def size_bytes(self) -> int:
        """Length of the file, which never changes."""
        return self._size_bytes

    @computed_once
    def _size_bytes(self) -> int:
        size_bytes = self.known_size_bytes
        return self.store.head(self.path).size_bytes if size_bytes is None else size_bytes

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes."""
        if start < 0 or length < 0 or start + length > self._size_bytes:
            raise _no_bytes(self.path, start, length)
        return self.store.get_range(self.path, start=start, length=length) if length else b""


@dataclass(frozen=True, slots=True)
class LoadedSource:
    """A file that was read as a whole."""

    name: str
    data: bytes

    def size_bytes(self) -> int:
        """Length of the file."""
        return len(self.data)

    def read(self, start: int, length: int) -> bytes:
        """Return exactly these bytes."""
        if start < 0 or length < 0 or start + length > len(self.data):
            raise _no_bytes(self.name, start, length)
        return self.data[start : start + length]


def _no_bytes(path: str, start: int, length: int) -> CorruptTableError:
    return CorruptTableError(f"{path} has no bytes {start} to {start + length}", path=path)


_MOST_FRAGMENTS = 4096
_MOST_ROWS = 1024
_MOST_BYTES = 16 << 10

_MOST_SCHEMAS = 256

_Key = tuple[tuple[FileAt, ...], int]
_Kept = tuple[Schema, pa.RecordBatch]
"""A schema whose address is part of the key, and the rows."""

SMALL_FRAGMENTS: CacheKind[_Key, _Kept] = CacheKind(
    name="small_fragments",
    most_bytes=128 << 20,
    weight=lambda kept: 1024 + kept[1].nbytes,
    most_values=_MOST_FRAGMENTS,
)
_schemas: RecentlyUsed[Schema, Schema] = RecentlyUsed(_MOST_SCHEMAS)


def interned(schema: Schema) -> Schema:
    """Return the same object for equal schemas, because comparing schemas per file is slow."""
    return _schemas.get(schema, lambda: schema)


def remembered(
    files: TableFiles, fragment: Fragment, schema: Schema, read: Callable[[], pa.RecordBatch]
) -> pa.RecordBatch | None:
    """Return all physical rows of a fragment; None when it is not small.

    The cache key includes the identity of `schema`, see `interned`.
    """
    rows = fragment.physical_rows
    if rows is None or not 0 < rows <= _MOST_ROWS or not fragment.files:
        return None
    if any((file.file_size_bytes or _MOST_BYTES + 1) > _MOST_BYTES for file in fragment.files):
        return None
    key = tuple(files.data_file(file) for file in fragment.files), id(schema)
    cache = files.root.session.caches[SMALL_FRAGMENTS]
    entry = cache.find(key)
    if entry is not None:
        return entry[1]
    rows_read = read()
    # Few bytes of a file can encode many values.
    if rows_read.nbytes <= _MOST_BYTES:
        cache.put(key, (schema, rows_read))
    return rows_read


RowOffsets = npt.NDArray[np.uint64]


class ColumnReader(Protocol):
    """Columns of one data file, under the names and types of the table's schema.

    JSON is read as binary JSON, blobs as descriptors.
    """

    @property
    def schema(self) -> pa.Schema:
        """Schema of all batches."""

    @property
    def num_rows(self) -> int:
        """Physical rows of the file."""

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProjection:
    """A data file and the fields to read from it."""

    file: DataFile
    fields: tuple[Field, ...]


def prune(field: Field, keep: frozenset[FieldId] | set[FieldId]) -> Field | None:
    """Reduce a field to the columns in `keep`; None when nothing is left."""
    if field.owns_column:
        return field if field.id in keep else None
    children = (prune(child, keep) for child in field.children)
    pruned = tuple(child for child in children if child is not None)
    return field.with_children(pruned) if pruned else None


def columns_of(field: Field) -> set[FieldId]:
    """Ids of all nodes of a field that own a column."""
    if field.owns_column:
        return {field.id}
    return {i for child in field.children for i in columns_of(child)}


def split(fragment: Fragment, schema: Schema) -> tuple[FileProjection, ...]:
    """Return the fields to read from each file; of two files with a field, the first is used."""
    wanted = {i for field in schema.fields for i in columns_of(field)}
    parts: list[FileProjection] = []
    for file in fragment.files:
        here = wanted.intersection(file.fields)
        if not here:
            continue
        if here == wanted and not parts:
            return (FileProjection(file=file, fields=schema.fields),)
        wanted -= here
        pruned = (prune(field, here) for field in schema.fields)
        fields = tuple(field for field in pruned if field is not None)
        parts.append(FileProjection(file=file, fields=fields))
    return tuple(parts)


def project(schema: Schema, paths: tuple[tuple[str, ...], ...]) -> Schema:
    """Reduce a schema to these paths of exact names, in schema order.

    If nothing is left out, the same object is returned, so that what is cached for it is found.
    """
    whole = {path[0] for path in paths if len(path) == 1}
    if whole and len(whole) == len(schema.fields) and whole.issuperset(schema.names):
        return schema
    keep: set[FieldId] = set()
    for path in paths:
        node = _node(schema, path)
        if node is not None:
            keep |= columns_of(node)
    pruned = (prune(field, keep) for field in schema.fields)
    return Schema(
        fields=tuple(field for field in pruned if field is not None), metadata=schema.metadata
    )


def _node(schema: Schema, path: tuple[str, ...]) -> Field | None:
    level = schema.fields
    node: Field | None = None
    for segment in path:
        node = next((f for f in level if f.name == segment), None)
        # A single column is read as a whole.
        if node is None or node.owns_column:
            return node
        level = node.children
    return node


def stored_schema(fragment: Fragment, schema: Schema) -> Schema:
    """Reduce a schema to the columns in a fragment's files."""
    stored = {field_id for file in fragment.files for field_id in file.fields}
    pruned = (prune(field, stored) for field in schema.fields)
    return replace(schema, fields=tuple(field for field in pruned if field is not None))


_TYPES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileShape:
    """A node of a column: its name in the file, its type in the table, and its children."""

    file_name: str
    target: pa.DataType
    children: tuple[FileShape, ...] = ()
    positions_in: FileVersion | None = None
    """Set for positions and sizes of blobs: the file version decides which are nulls."""

    raw_text: bool = False
    """Whether bytes become strings without a check that they are UTF-8."""

    @property
    def keeps_its_type(self) -> bool:
        """Whether arrays of the target's type, at any depth, are returned unchanged."""
        is_stored = self.positions_in is None and not pa.types.is_dictionary(self.target)
        return is_stored and not _has_words(self.target)

    def apply(self, array: pa.Array) -> pa.Array:
        """Return a column of the file with the table's type."""
        if self.positions_in is not None:
            return retype(positions_with_nulls(array, self.positions_in), self.target)
        if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
            return self._retyped(_without_null_words(array))
        if array.type.equals(self.target, check_metadata=True) and not _has_words(array.type):
            return array
        if not self.children or isinstance(array, pa.ExtensionArray):
            return self._retyped(array)
        ensure_same_kind(array.type, self.target)
        if pa.types.is_struct(self.target):
            self._ensure_members(array.type)
            parts = [child.apply(array.field(child.file_name)) for child in self.children]
            return struct_of(parts, list(self.target), array)
        if pa.types.is_map(self.target):
            return self._retyped(array)
        (item,) = self.children
        count = 1 if pa.types.is_fixed_size_list(self.target) else 2
        return pa.Array.from_buffers(
            self.target,
            len(array),
            array.buffers()[:count],
            array.null_count,
            array.offset,
            [item.apply(array.values)],
        )

    def _retyped(self, array: pa.Array) -> pa.Array:
        return retype(array, self.target, raw_text=self.raw_text)

    def _ensure_members(self, dtype: pa.StructType) -> None:
        names = [child.file_name for child in self.children]
        if any(dtype.get_field_index(name) < 0 for name in names):
            problem = f"a column has type {dtype}, and {self.target} in the table"
            raise CorruptTableError(problem)


def shaped(
    batch: pa.RecordBatch, shapes: tuple[FileShape, ...], schema: pa.Schema, path: str
) -> pa.RecordBatch:
    """Convert the columns of a data file to those of the table, which are in the same order."""
    if batch.num_columns != len(shapes):
        problem = f"data file {path} has fewer columns than the manifest lists"
        raise CorruptTableError(problem, path=path)
    arrays = [shape.apply(batch.column(position)) for position, shape in enumerate(shapes)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _without_null_words(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Move nulls into the indices: Arrow cannot join dictionaries with nulls, as in 2.0 files."""
    encoded = array.dictionary_decode().dictionary_encode()
    indices = encoded.indices.cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)


@functools.lru_cache(maxsize=_TYPES)
def _has_words(dtype: pa.DataType) -> bool:
    """Whether this type contains a dictionary."""
    below = [dtype.field(i).type for i in range(dtype.num_fields)]
    return any(pa.types.is_dictionary(child) or _has_words(child) for child in below)


def positions_with_nulls(array: pa.StructArray, version: FileVersion) -> pa.StructArray:
    """Return positions and sizes as official releases show them.

    Since 2.1 a null has size 0 and a position other than 0. In 2.0 files it has size 0 and
    position 1, and is shown like that.
    """
    if not version.leaves_only:
        return array
    position, size = array.field("position"), array.field("size")
    is_null = pc.and_(pc.equal(size, 0), pc.not_equal(position, 0))
    mask = pc.or_(is_null, pc.is_null(array))
    return pa.StructArray.from_arrays([position, size], fields=list(array.type), mask=mask)
