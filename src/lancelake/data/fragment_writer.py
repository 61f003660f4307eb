"""Fragment writer: writes a stream of batches to data files of new fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.data.arrays.batches import LEAST_BYTES, PIECE_BYTES, gathered, pieces
from lancelake.data.arrays.conform import Conformer
from lancelake.data.column_file import (
    DataFileWriter,
    FileWatch,
    PageSizes,
    Progress,
    WriteCounts,
    WriteTask,
)
from lancelake.data.schema_check import ensure_fits, ensure_storable
from lancelake.errors import LanceTableError
from lancelake.format.bases import BasePath
from lancelake.format.file_version import FileVersion
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.layout import data_file_name
from lancelake.format.schema import Schema
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt, TableFiles
from lancelake.threads import Future, Pool

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
