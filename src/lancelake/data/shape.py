"""Columns as a file names and nests them -> columns as the table does."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lancelake.data.blob_positions import with_nulls
from lancelake.data.retype import retype, struct_of
from lancelake.format.file_version import FileVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A node of a column: its name in the file, its type in the table, and what lies below."""

    file_name: str
    target: pa.DataType
    children: tuple[Shape, ...] = ()
    positions_in: FileVersion | None = None
    """Set for positions and sizes of blobs: the version says which of them are nulls."""

    def apply(self, array: pa.Array) -> pa.Array:
        """Return a column of the file as the table has it."""
        if self.positions_in is not None:
            return retype(with_nulls(array, self.positions_in), self.target)
        if array.type.equals(self.target, check_metadata=True):
            return array
        if not self.children or isinstance(array, pa.ExtensionArray):
            return retype(array, self.target)
        if pa.types.is_struct(self.target):
            parts = [child.apply(array.field(child.file_name)) for child in self.children]
            return struct_of(parts, list(self.target), array)
        if pa.types.is_map(self.target):
            return retype(array, self.target)
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
