"""Writing one data file, and the task that says how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyroaring import BitMap

from lancelake.data.arrays.batches import (
    LEAST_BYTES,
    PIECE_BYTES,
    InvalidText,
    gathered,
    pieces,
    struct_of,
)
from lancelake.data.arrays.conform import Conformer, SpreadRows, column_ids, file_field, file_schema
from lancelake.data.blobs import BlobFiles
from lancelake.data.codec.official import CodecAddress, CodecWriter
from lancelake.data.schema_check import ensure_fits, ensure_storable
from lancelake.errors import InvalidRequestError, InvalidRequestOSError, LanceTableError
from lancelake.format import layout
from lancelake.format.fragment import DEFAULT_VERSION, BasePath, DataFile, FileVersion, Fragment
from lancelake.format.ids import TOMBSTONE, FragmentId
from lancelake.format.layout import data_file_name
from lancelake.format.schema import Field, Schema
from lancelake.storage import disk_sync
from lancelake.storage.instrumented import count_written, report_created
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.threads import Future, Pool

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
    file_version: FileVersion = DEFAULT_VERSION
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

    def completed(self, fragment: Fragment) -> None:
        """Called after a file is written."""


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


_HAS_BLOB_FILES = FileVersion.V2_2.numbers


def write_fragments(
    task: WriteTask,
    reader: pa.RecordBatchReader,
    *,
    progress: Progress | None = None,
    watch: FileWatch | None = None,
    columns: Schema | None = None,
) -> tuple[Fragment, ...]:
    """Write all rows of `reader` and return a fragment with id 0 for each data file.

    `columns` is the result of `fit_columns` for these rows, if the caller has it.

    On local disk the files are durable when this returns. After an error or an interrupt the files
    are removed, since nobody else knows them; a watch was told of them and decides itself.
    """
    schema = fit_columns(task, reader.schema) if columns is None else columns
    output = _Output(
        task=task,
        conform=Conformer(schema, task.file_version, task.text),
        progress=progress,
        watch=watch,
    )
    try:
        with output.settling:
            for batch in gathered(output.announcing(reader), _gathered_bytes(task.pages)):
                for piece in pieces(batch, min(PIECE_BYTES, task.full_at_bytes)):
                    output.write(piece)
            return output.finish()
    except BaseException:
        if watch is None:
            output.discard()
        raise


def fit_columns(task: WriteTask, data: pa.Schema) -> Schema:
    """Return the fields of a task that data has, or refuse columns that its files cannot store."""
    schema = ensure_fits(task.schema, data, casts=task.casts)
    ensure_storable(schema, task.file_version, newest_readers_only=task.newest_readers_only)
    return schema


def discard(files: TableFiles, fragments: Iterable[Fragment]) -> None:
    """Remove the files of fragments that no commit can have published."""
    places: list[FileAt] = []
    for file in (file for fragment in fragments for file in fragment.files):
        place = files.data_file(file)
        places.append(place)
        # Earlier versions have no blobs beside their files.
        if (file.file_major_version, file.file_minor_version) >= _HAS_BLOB_FILES:
            with suppress(LanceTableError):
                beside = place.store.list(place.path.removesuffix(".lance"))
                places += [FileAt(root=place.root, path=info.path) for info in beside]
    _remove(places)


def _remove(places: Iterable[FileAt]) -> None:
    """Remove files as far as the stores allow; what is left are orphans."""
    roots: dict[Location, list[str]] = {}
    for place in places:
        roots.setdefault(place.root, []).append(place.path)
    for root, paths in roots.items():
        with suppress(LanceTableError):
            root.store.delete_many(paths)


def _gathered_bytes(pages: PageSizes) -> int:
    """Return the size of the batches that the codec gets: it fills its cache with them."""
    cache = pages.data_cache_bytes
    return LEAST_BYTES if cache is None else min(cache, LEAST_BYTES)


@dataclass(slots=True, kw_only=True)
class _Output:
    """Files of one call, of which the last is open."""

    task: WriteTask
    conform: Conformer
    progress: Progress | None
    watch: FileWatch | None
    settling: Pool = field(default_factory=lambda: Pool(1))
    _written: list[FileAt] = field(default_factory=list)
    _fragments: list[Fragment] = field(default_factory=list)
    _settled: list[Future[None]] = field(default_factory=list)
    _open: DataFileWriter | None = None
    _closed: DataFileWriter | None = None
    _last_in: dict[BasePath | None, DataFileWriter] = field(default_factory=dict)
    _rows: int = 0
    _size_bytes: int = 0
    _memory_bytes: int = 0

    def announcing(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches, and report the first file as soon as there are rows for it.

        A watcher of the files must know of one whose rows are never completed.
        """
        for batch in batches:
            if self.watch is not None and batch.num_rows:
                self._writer()
            yield batch

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; close files that are full."""
        rest = batch
        while rest.num_rows:
            room = self.task.max_rows_per_file - (self._open.rows if self._open else 0)
            part, rest = rest.slice(0, room), rest.slice(room)
            # Before a file is opened, so that invalid values leave none behind.
            values = self.conform(part)
            writer = self._writer()
            writer.write(values)
            self._rows += part.num_rows
            self._report()
            if writer.rows >= self.task.max_rows_per_file or self._is_large(writer):
                self._close(writer)

    def finish(self) -> tuple[Fragment, ...]:
        """Close the last file and wait until all have settled."""
        if self._open is not None:
            self._close(self._open)
        if self._closed is not None:
            self._closed.settle()
        for future in self._settled:
            future.result()
        for writer in self._last_in.values():
            writer.sync_name()
        return tuple(self._fragments)

    def discard(self) -> None:
        """Remove all files."""
        if self._open is not None:
            self._open.abandon()
            self._written += self._open.places()
        _remove(self._written)

    def _writer(self) -> DataFileWriter:
        if self._open is None:
            self._settle_aside()
            name = data_file_name(self.task.root.session.ids.uuid4())
            base = self.task.bases[len(self._fragments) % len(self.task.bases)]
            self._open = DataFileWriter(self.task, self.conform.schema, name, base)
            self._last_in[base] = self._open
            if self.watch is not None:
                self.watch.begun(Fragment(id=FragmentId(0), files=(self._open.begun,)))
        return self._open

    def _close(self, writer: DataFileWriter) -> None:
        entry = writer.close()
        self._open = None
        self._written += writer.places()
        fragment = Fragment(id=FragmentId(0), files=(entry,), physical_rows=writer.rows)
        self._fragments.append(fragment)
        self._size_bytes += entry.file_size_bytes or 0
        self._memory_bytes += writer.memory_bytes
        self._closed = writer
        if self.watch is not None:
            self.watch.completed(fragment)
        self._report()

    def _settle_aside(self) -> None:
        """Sync a file to disk while the next is written."""
        if self._closed is not None:
            self._settled.append(self.settling.submit(self._closed.settle))
            self._closed = None

    def _is_large(self, writer: DataFileWriter) -> bool:
        """Estimate a file's size from its values and the compression of earlier files."""
        share = self._size_bytes / self._memory_bytes if self._memory_bytes else 1.0
        return writer.memory_bytes * share >= self.task.full_at_bytes

    def _report(self) -> None:
        if self.progress is not None:
            counts = WriteCounts(
                rows=self._rows, files=len(self._fragments), size_bytes=self._size_bytes
            )
            self.progress(counts)
