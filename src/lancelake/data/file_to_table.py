"""Mapping of a file's columns to the table's names and nesting."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.arrays.retype import ensure_same_kind, retype, struct_of
from lancelake.errors import CorruptTableError
from lancelake.format.file_version import FileVersion

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

    def _ensure_members(self, found: pa.StructType) -> None:
        names = [child.file_name for child in self.children]
        if any(found.get_field_index(name) < 0 for name in names):
            problem = f"a column has type {found}, and {self.target} in the table"
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
