"""Rows of a fragment: its columns, which of its rows are deleted, and their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, FrozenBitMap

from lancelake.caches import CacheKind, RecentlyUsed
from lancelake.data.arrays.batches import struct_of
from lancelake.data.codec.lance_file import load_layout, open_lance_columns
from lancelake.data.codec.readers import open_reader
from lancelake.data.column_reader import (
    ColumnReader,
    FileProjection,
    RowOffsets,
    StoreSource,
    remembered,
    split,
)
from lancelake.data.legacy.legacy_file import LegacyFile
from lancelake.errors import CorruptTableError, LanceTableError, ObjectNotFoundError
from lancelake.format import deletion
from lancelake.format.arrow_schema import storage_field
from lancelake.format.fragment import DataFile, ExternalFile, FileVersion, Fragment, Sequenced
from lancelake.format.frozen import computed_once
from lancelake.format.logical_types import described
from lancelake.format.row_address import row_addresses
from lancelake.format.rowids import UNKNOWN_VERSION, RowIdSequence, U64Array, VersionSequence
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


# A deletion file never changes: its name includes a random number.
_SMALL_ROWS = 1 << 16
# A larger row count of a manifest is checked against the data file.
_LIKELY_ROWS = 1 << 22
DELETIONS: CacheKind[FileAt, FrozenBitMap] = CacheKind(
    name="deleted_rows",
    most_bytes=128 << 20,
    weight=lambda rows: 128 + 2 * len(rows),  # sets of these sizes have at most two bytes a row
    most_values=1024,
)


def known_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Like `load_deletions`, with a cache for small files."""
    entry = fragment.deletion_file
    if entry is None or entry.num_deleted_rows is None or entry.num_deleted_rows > _SMALL_ROWS:
        return load_deletions(files, fragment)
    place = files.deletion_file(fragment.id, entry)
    cache = place.root.session.caches[DELETIONS]
    return BitMap(cache.get(place, lambda: FrozenBitMap(load_deletions(files, fragment))))


def load_deletions(files: TableFiles, fragment: Fragment) -> BitMap:
    """Return the offsets of deleted rows; empty when there is no deletion file."""
    entry = fragment.deletion_file
    if entry is None:
        return BitMap()
    place = files.deletion_file(fragment.id, entry)
    try:
        data = place.store.get(place.path)
        rows = deletion.decode(data, entry.file_type, rows=fragment.physical_rows)
        if len(rows) > _SMALL_ROWS or not 0 <= (fragment.physical_rows or -1) <= _LIKELY_ROWS:
            _ensure_within_file(files, fragment, rows)
    except ObjectNotFoundError as error:
        problem = f"deletion file {place.path} of fragment {fragment.id} is missing"
        raise CorruptTableError(problem, table=files.root.uri, path=place.path) from error
    except LanceTableError as error:
        raise error.at(files.root.uri) from error.__cause__
    return rows


def _ensure_within_file(files: TableFiles, fragment: Fragment, rows: BitMap) -> None:
    """Raise for deletions of rows that no data file has, before memory is allocated for them."""
    if not fragment.files or not rows:
        return
    stored = stored_rows(files, fragment.files[0])
    if (fragment.physical_rows or 0) > stored:
        problem = f"fragment {fragment.id} has {stored} rows, not {fragment.physical_rows}"
        raise CorruptTableError(problem, fragment=fragment.id)
    if rows.max() >= stored:
        problem = f"deleted row {rows.max()} is not in fragment {fragment.id} of {stored} rows"
        raise CorruptTableError(problem, fragment=fragment.id)


class MetaColumn(Enum):
    """A column computed from the position of a row."""

    ROW_ID = "_rowid"
    ROW_ADDRESS = "_rowaddr"
    ROW_OFFSET = "_rowoffset"
    CREATED_AT = "_row_created_at_version"
    LAST_UPDATED_AT = "_row_last_updated_at_version"


META_NAMES = tuple(column.value for column in MetaColumn)
META_TYPE = pa.uint64()


@dataclass(frozen=True)
class RowMeta:
    """Computes metadata columns for rows of one fragment."""

    files: TableFiles
    fragment: Fragment
    physical_rows: int
    has_stable_row_ids: bool

    def column(self, meta: MetaColumn, offsets: RowOffsets, live_rank: RowOffsets) -> pa.Array:
        """Return a metadata column; `live_rank` numbers the rows in scan order of the version."""
        match meta:
            case MetaColumn.ROW_ID:
                return pa.array(self.row_ids(offsets))
            case MetaColumn.ROW_ADDRESS:
                return pa.array(row_addresses(self.fragment.id, offsets))
            case MetaColumn.ROW_OFFSET:
                return pa.array(live_rank)
            case MetaColumn.CREATED_AT:
                return pa.array(self._created[offsets])
            case MetaColumn.LAST_UPDATED_AT:
                return pa.array(self._last_updated[offsets])
            case _:
                assert_never(meta)

    def row_ids(self, offsets: RowOffsets) -> U64Array:
        """Stable ids where the table has them, addresses otherwise."""
        if not self.has_stable_row_ids:
            return row_addresses(self.fragment.id, offsets)
        ids: U64Array = self._row_ids[offsets]
        return ids

    def row_id_sequence(self) -> RowIdSequence:
        """Stable ids of all physical rows."""
        data = self._load(self.fragment.row_ids)
        if data is None:
            problem = f"fragment {self.fragment.id} has no row ids although row ids are stable"
            raise CorruptTableError(problem, table=self.files.root.uri)
        return RowIdSequence.decode(data, physical_rows=self.physical_rows)

    def newest_update(self) -> int:
        """Return the last version in which a row was changed."""
        return int(self._last_updated.max()) if self.physical_rows else 0

    def is_updated(self) -> npt.NDArray[np.bool_]:
        """Return for each row whether it was changed since it was inserted."""
        return self._last_updated > self._created

    @computed_once
    def _row_ids(self) -> U64Array:
        return self.row_id_sequence().values()

    @computed_once
    def _created(self) -> U64Array:
        return self._versions(self.fragment.created_at_versions)

    @computed_once
    def _last_updated(self) -> U64Array:
        return self._versions(self.fragment.last_updated_at_versions)

    def _versions(self, source: Sequenced) -> U64Array:
        data = self._load(source)
        rows = self.physical_rows
        if data is None:
            return VersionSequence.constant(UNKNOWN_VERSION, rows=rows).values()
        return VersionSequence.decode(data, physical_rows=rows).values()

    def _load(self, source: Sequenced) -> bytes | None:
        if isinstance(source, ExternalFile):
            place = self.files.external(source)
            store = place.store
            return store.get_range(place.path, start=source.offset, length=source.size)
        return source


def physical_rows(files: TableFiles, manifest_at: FileAt, fragment: Fragment) -> int:
    """Count the rows in a fragment's files, deleted ones included."""
    from lancelake.data.fragment_reader import FragmentReader  # noqa: PLC0415

    return FragmentReader(files, manifest_at, fragment, Schema(fields=())).physical_rows
