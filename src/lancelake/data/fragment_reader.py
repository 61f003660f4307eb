"""Columns of a fragment, read from all its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lancelake.caches import RecentlyUsed
from lancelake.data.arrays.retype import struct_of
from lancelake.data.byte_source import StoreSource, remembered
from lancelake.data.codec.lance_file import load_layout, open_lance_columns
from lancelake.data.codec.readers import open_reader
from lancelake.data.column_reader import ColumnReader, FileProjection, RowOffsets, split
from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.errors import CorruptTableError
from lancelake.format.arrow_schema import storage_field
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.frozen import computed_once
from lancelake.format.logical_types import described
from lancelake.format.schema import Field, Schema
from lancelake.storage.table_files import FileAt, TableFiles

_CACHED = 64


@dataclass(frozen=True)
class Assembler:
    """Joins batches of the same rows, each with some of the fields of a schema."""

    schema: Schema

    @staticmethod
    def of(schema: Schema) -> Assembler:
        """Return the assembler of a schema, cached by schema."""
        # The cached value keeps its schema alive, so that no other schema gets the same id.
        return _known.get(id(schema), lambda: Assembler(schema))

    def __call__(self, parts: Sequence[pa.RecordBatch], num_rows: int) -> pa.RecordBatch:
        """Return all fields for these rows."""
        target = self._target
        if len(parts) == 1 and parts[0].schema.equals(target, check_metadata=True):
            return parts[0]
        if not self._fields:
            return empty_batch(num_rows)
        columns = []
        for node, field in zip(self._fields, target, strict=True):
            arrays = [part.column(node.name) for part in parts if node.name in part.schema.names]
            columns.append(_column(node, field.type, arrays, num_rows))
        return pa.RecordBatch.from_arrays(columns, schema=target)

    @computed_once
    def _fields(self) -> tuple[Field, ...]:
        return tuple(described(field) for field in self.schema.fields)

    @computed_once
    def _target(self) -> pa.Schema:
        return pa.schema([storage_field(field) for field in self._fields])


_known: RecentlyUsed[int, Assembler] = RecentlyUsed(_CACHED)


def empty_batch(num_rows: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), num_rows, [None]))


def _column(field: Field, target: pa.DataType, parts: list[pa.Array], num_rows: int) -> pa.Array:
    if not parts:
        return pa.nulls(num_rows, target)
    if len(parts) == 1 and parts[0].type.equals(target):
        return parts[0]
    if pa.types.is_struct(target):
        return _struct(field, target, parts, num_rows)
    return _list(field, target, parts)


def _struct(field: Field, target: pa.StructType, parts: list[pa.Array], num_rows: int) -> pa.Array:
    children = []
    for child, child_field in zip(field.children, target, strict=True):
        arrays = [
            part.field(child.name) for part in parts if part.type.get_field_index(child.name) >= 0
        ]
        children.append(_column(child, child_field.type, arrays, num_rows))
    return struct_of(children, list(target), parts[0])


def _list(field: Field, target: pa.DataType, parts: list[pa.Array]) -> pa.Array:
    """Join lists with the same offsets and different fields."""
    first = parts[0]
    (item,) = field.children
    values = _column(item, target.value_type, [p.values for p in parts], len(first.values))
    buffers = first.buffers()[: 1 if pa.types.is_fixed_size_list(target) else 2]
    return pa.Array.from_buffers(
        target, len(first), buffers, first.null_count, first.offset, [values]
    )


def open_columns(
    files: TableFiles, part: FileProjection, manifest: FileAt, *, raw_text: bool = False
) -> tuple[ColumnReader, ...]:
    """Open the projected columns of one file, in one or more readers.

    With `raw_text`, strings are returned as stored, even if they are not UTF-8; strings of
    legacy files are always checked.
    """
    place = files.data_file(part.file)
    if part.file.version is FileVersion.LEGACY:
        dictionaries = StoreSource(manifest.root.store, manifest.path)
        source = StoreSource(place.store, place.path)
        return (LegacyFile.open(source, part.file, part.fields, manifest=dictionaries),)
    return open_lance_columns(place, part.file, part.fields, raw_text=raw_text)


def stored_rows(files: TableFiles, file: DataFile) -> int:
    """Count the rows of a data file by opening it."""
    place = files.data_file(file)
    if file.version is FileVersion.LEGACY:
        source = StoreSource(place.store, place.path)
        return LegacyFile.open(source, file, (), manifest=None).num_rows
    return open_reader(place, None).num_rows()


def column_sizes(files: TableFiles, file: DataFile) -> dict[int, int]:
    """Return the size of each column of a data file by index; empty for legacy files."""
    if file.version is FileVersion.LEGACY:
        return {}
    place = files.data_file(file)
    sizes = open_reader(place, None).column_sizes()
    columns = load_layout(place, file).columns
    return {c.index: sum(sizes[c.index : c.index + c.width]) for c in columns}


@dataclass(frozen=True)
class FragmentReader:
    """Reads the fields of `schema` from one fragment; deleted rows are included.

    With `remembers`, the columns of a small fragment are cached. With `raw_text`, strings
    are returned as stored, even if they are not UTF-8.
    """

    files: TableFiles
    manifest: FileAt
    fragment: Fragment
    schema: Schema
    remembers: bool = False
    raw_text: bool = False

    @computed_once
    def physical_rows(self) -> int:
        """Rows in the files, from the manifest or else from a file."""
        if self.fragment.physical_rows is not None:
            return self.fragment.physical_rows
        if not self.fragment.files:
            return 0
        return stored_rows(self.files, self.fragment.files[0])

    def batches(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows start to stop in order, in batches of `batch_rows`, except for the last."""
        if self._remembered is not None:
            for first in range(start, stop, batch_rows):
                yield self._remembered.slice(first, min(batch_rows, stop - first))
            return
        yield from self._read(start=start, stop=stop, batch_rows=batch_rows)

    def _read(self, *, start: int, stop: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        if not self._readers:
            for first in range(start, stop, batch_rows):
                yield self._assemble((), min(batch_rows, stop - first))
            return
        streams = [r.batches(start=start, stop=stop, batch_rows=batch_rows) for r in self._readers]
        for parts in zip(*streams, strict=True):
            yield self._join(parts, parts[0].num_rows)

    def take(self, offsets: RowOffsets) -> pa.RecordBatch:
        """Return the rows at these offsets, sorted and unique."""
        if self._remembered is not None:
            return self._remembered.take(pa.array(offsets))
        parts = tuple(reader.take(offsets) for reader in self._readers)
        return self._join(parts, len(offsets))

    def _join(self, parts: tuple[pa.RecordBatch, ...], num_rows: int) -> pa.RecordBatch:
        if any(part.num_rows != num_rows for part in parts):
            problem = f"files of fragment {self.fragment.id} differ in their row counts"
            raise CorruptTableError(problem, table=self.files.root.uri)
        return self._assemble(parts, num_rows)

    @computed_once
    def _remembered(self) -> pa.RecordBatch | None:
        if not self.remembers:
            return None
        return remembered(self.files, self.fragment, self.schema, self._whole)

    def _whole(self) -> pa.RecordBatch:
        rows = self.physical_rows
        return pa.concat_batches(list(self._read(start=0, stop=rows, batch_rows=rows)))

    @computed_once
    def _assemble(self) -> Assembler:
        return Assembler.of(self.schema)

    @computed_once
    def _readers(self) -> tuple[ColumnReader, ...]:
        parts = split(self.fragment, self.schema)
        return tuple(reader for part in parts for reader in self._open(part))

    def _open(self, part: FileProjection) -> tuple[ColumnReader, ...]:
        readers = open_columns(self.files, part, self.manifest, raw_text=self.raw_text)
        rows = readers[0].num_rows
        if rows != self.physical_rows:
            problem = (
                f"data file {part.file.path} has {rows} rows, "
                f"fragment {self.fragment.id} {self.physical_rows}"
            )
            raise CorruptTableError(problem, table=self.files.root.uri, path=part.file.path)
        return readers
