"""Writing one data file, and the task that says how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.batches import gathered, pieces
from lancelake.data.arrays.conform import Conformer, SpreadRows
from lancelake.data.arrays.retype import InvalidText, struct_of
from lancelake.data.blobs import BlobFiles
from lancelake.data.codec.address import CodecAddress, CodecWriter
from lancelake.data.file_schema import column_ids, file_field, file_schema
from lancelake.data.schema_check import ensure_fits, ensure_storable
from lancelake.errors import InvalidRequestError, InvalidRequestOSError, LanceTableError
from lancelake.format import file_version, layout
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import DataFile, Fragment
from lancelake.format.ids import TOMBSTONE
from lancelake.format.layout import data_file_name
from lancelake.format.schema import Field, Schema
from lancelake.storage import disk_sync
from lancelake.storage.instrumented import count_written, report_created
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles

MAX_ROWS_PER_FILE = 1024 * 1024
MAX_BYTES_PER_FILE = 90 * 1024**3
# The size of a page, below which official Lance does not close a file either.
LEAST_BYTES_PER_FILE = 8 << 20


def full_at_bytes(max_bytes_per_file: int) -> int:
    """Return the size at which a file is closed: the limit, or that of a page if it is lower."""
    return max(max_bytes_per_file, LEAST_BYTES_PER_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """Sizes of the pages of data files; None is the codec's own choice."""

    max_page_bytes: int | None = None
    """A page that would be larger is split."""

    data_cache_bytes: int | None = None
    """Bytes of all columns that are kept in memory to fill pages."""

    def __post_init__(self) -> None:
        """Refuse pages without bytes."""
        if self.max_page_bytes is not None and self.max_page_bytes < 1:
            problem = f"max_page_bytes must be greater than 0, got {self.max_page_bytes}"
            raise InvalidRequestOSError(problem, found=self.max_page_bytes)


DEFAULT_PAGES = PageSizes()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """Table, format and file size of rows to write.

    It can be pickled and run in another process.
    """

    root: Location
    schema: Schema
    file_version: FileVersion = file_version.DEFAULT
    max_rows_per_file: int = MAX_ROWS_PER_FILE
    max_bytes_per_file: int = MAX_BYTES_PER_FILE
    """A file is closed soon after it has reached this size, or `LEAST_BYTES_PER_FILE`."""

    bases: tuple[BasePath | None, ...] = (None,)
    """Bases for data files, used in turn; None is the root."""

    casts: bool = False
    """Whether values of another type are converted without loss; otherwise they are refused."""

    allow_external_blobs: bool = False
    """Whether blobs may be URIs of objects outside the table and its base paths."""

    declared_bases: tuple[BasePath, ...] = ()
    """Base paths of the table, below which blobs may be stored."""

    text: InvalidText = InvalidText.REFUSE
    """Handling of strings with invalid UTF-8."""

    pages: PageSizes = DEFAULT_PAGES
    newest_readers_only: bool = False
    """Whether to write types that pylance 4 cannot read."""

    @property
    def full_at_bytes(self) -> int:
        """Size at which a file is closed."""
        return full_at_bytes(self.max_bytes_per_file)

    def __post_init__(self) -> None:
        """Validate limits and bases."""
        for name in ("max_rows_per_file", "max_bytes_per_file"):
            if getattr(self, name) < 1:
                raise InvalidRequestError(f"{name} must be at least 1", found=getattr(self, name))
        if not self.bases:
            raise InvalidRequestError("no base for data files is given")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCounts:
    """Progress of a write."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0

    @staticmethod
    def of(fragments: Iterable[Fragment]) -> WriteCounts:
        """Return the progress of these fragments."""
        every = tuple(fragments)
        files = [file for fragment in every for file in fragment.files]
        return WriteCounts(
            rows=sum(fragment.physical_rows or 0 for fragment in every),
            files=len(files),
            size_bytes=sum(file.file_size_bytes or 0 for file in files),
        )


Progress = Callable[[WriteCounts], None]
"""Called after every batch with the rows written, the files closed and their bytes."""


class FileWatch(Protocol):
    """Receives every data file."""

    def begun(self, fragment: Fragment) -> None:
        """Called before a file is written, without columns and rows yet."""
        ...

    def completed(self, fragment: Fragment) -> None:
        """Called after a file is written."""
        ...


class DataFileWriter:
    """Writes batches of `Conformer`; the file is not visible until `close`."""

    def __init__(
        self, task: WriteTask, schema: Schema, name: str, base: BasePath | None = None
    ) -> None:
        """Open a file of this name for the fields of `schema`, below a base or the root."""
        self.rows = 0
        self.memory_bytes = 0
        self._schema = schema
        self._entry = _entry(task, schema, name, base)
        files = TableFiles(root=task.root, bases=() if base is None else (base,))
        self._place = files.data_file(self._entry)
        self._address = CodecAddress.of(self._place)
        self._blobs = BlobFiles(
            address=self._address,
            allow_external=task.allow_external_blobs,
            bases=task.declared_bases,
        )
        self._arrow = file_schema(schema)
        self._codec = CodecWriter(
            self._address,
            name,
            self._arrow,
            version=task.file_version.value,
            max_page_bytes=task.pages.max_page_bytes,
            data_cache_bytes=task.pages.data_cache_bytes,
        )

    @property
    def begun(self) -> DataFile:
        """The file's entry before anything is written."""
        return replace(self._entry, fields=(), column_indices=())

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        prepared = self._with_stored_blobs(batch)
        self._codec.write(prepared)
        self.rows += batch.num_rows
        self.memory_bytes += prepared.nbytes

    def close(self) -> DataFile:
        """Finish the file and return its entry; `settle` must follow."""
        self._blobs.finish()
        size = self._codec.close()
        count_written(self._place.root, size)
        report_created(self._place.root, self._place.path)
        return replace(self._entry, file_size_bytes=size)

    def abandon(self) -> None:
        """End the files of rows that are not complete."""
        with suppress(LanceTableError):
            self._blobs.finish()
        with suppress(LanceTableError):
            self._codec.abandon()

    def places(self) -> list[FileAt]:
        """Return the places of the file and of the files beside it."""
        return [self._place, *self._blobs.places()]

    def settle(self, *, leaves_sync: bool = False) -> None:
        """Move the files to their location, on local disk durably except for the file's name.

        Callers with many files may sync their bytes together, later.
        """
        self._blobs.settle()
        if not (leaves_sync and self._address.is_in_place):
            self._address.arrived()

    def sync_name(self) -> None:
        """Sync the names of all files in this file's folder."""
        if self._address.is_in_place:
            disk_sync.sync_folder(Path(self._address.uri).parent)

    def _with_stored_blobs(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            self._stored(field, array)
            for field, array in zip(self._schema.fields, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._arrow)

    def _stored(self, field: Field, array: pa.Array) -> pa.Array:
        """Store the blobs of a column and of the structs in it."""
        if field.is_blob_v2:
            return self._blobs.store(field, array)
        if field.logical_type != "struct" or not any(node.is_blob_v2 for node in field.walk()):
            return array
        pairs = zip(field.children, array.flatten(), strict=True)
        members = [self._stored(child, values) for child, values in pairs]
        return struct_of(members, [file_field(child) for child in field.children], array)


def _entry(task: WriteTask, schema: Schema, name: str, base: BasePath | None) -> DataFile:
    major, minor = task.file_version.numbers
    ids = column_ids(schema, task.file_version)
    return DataFile(
        path=name,
        fields=ids,
        column_indices=tuple(range(len(ids))),
        file_major_version=major,
        file_minor_version=minor,
        base_id=None if base is None else base.id,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFile:
    """Columns to write for a fragment, and their location."""

    root: Location
    schema: Schema
    version: FileVersion
    casts: bool = False
    newest_readers_only: bool = False
    text: InvalidText = InvalidText.REFUSE
    """Handling of strings that are not UTF-8."""
    declared_bases: tuple[BasePath, ...] = ()
    """Base paths of the table, below which blobs may be stored."""

    def ensure_possible(self, data: pa.Schema) -> Schema:
        """Return the columns of the data, or raise for those that do not fit."""
        schema = ensure_fits(self.schema, data, casts=self.casts)
        ensure_storable(schema, self.version, newest_readers_only=self.newest_readers_only)
        return schema

    def write(
        self,
        batches: Iterable[pa.RecordBatch],
        data: pa.Schema,
        *,
        deleted: BitMap,
        physical_rows: int,
    ) -> DataFile | None:
        """Write the values of a fragment's live rows in order; None when it has no live row.

        On local disk the file is durable when `sync_file` and `sync_names` have followed.
        """
        schema = self.ensure_possible(data)
        conform = Conformer(schema, self.version, self.text)
        spread = SpreadRows(
            schema=schema, version=self.version, deleted=deleted, physical_rows=physical_rows
        )
        values = spread(conform(batch) for batch in gathered(_nonempty(batches)))
        first = next(values, None)
        if first is None:
            return None
        task = WriteTask(
            root=self.root,
            schema=schema,
            file_version=self.version,
            declared_bases=self.declared_bases,
        )
        writer = DataFileWriter(task, schema, data_file_name(self.root.session.ids.uuid4()))
        for piece in pieces(first):
            writer.write(piece)
        for batch in values:
            for piece in pieces(batch):
                writer.write(piece)
        entry = writer.close()
        writer.settle(leaves_sync=True)
        return entry


def sync_file(root: Location, file: DataFile | None) -> None:
    """Sync the bytes of a file below a root."""
    if file is not None and root.scheme == "file":
        disk_sync.sync_file(Path(root.uri) / layout.DATA / file.path)


def sync_names(root: Location) -> None:
    """Sync the names of all data files below a root."""
    if root.scheme == "file":
        folder = Path(root.uri) / layout.DATA
        if folder.exists():
            disk_sync.sync_folder(folder)


def with_file(fragment: Fragment, file: DataFile) -> Fragment:
    """Add a file to a fragment; its columns replace those of earlier files."""
    taken = frozenset(file.fields)
    files = tuple(_without(old, taken) for old in fragment.files)
    live = (old for old in files if any(i != TOMBSTONE for i in old.fields))
    return replace(fragment, files=(*live, file))


def _without(file: DataFile, taken: frozenset[int]) -> DataFile:
    if taken.isdisjoint(file.fields):
        return file
    fields = tuple(TOMBSTONE if i in taken else i for i in file.fields)
    return replace(file, fields=fields)


def _nonempty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)
