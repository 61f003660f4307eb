"""Fragment writer: writes a stream of batches to data files of new fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.clock import Ids
from lancelake.data.arrays.conform import Conformer
from lancelake.data.arrays.rebatch import LEAST_BYTES, PIECE_BYTES, gathered, pieces
from lancelake.data.data_file_writer import DataFileWriter
from lancelake.data.schema_check import ensure_fits
from lancelake.data.storable import ensure_storable
from lancelake.data.write_task import FileWatch, PageSizes, Progress, WriteCounts, WriteTask
from lancelake.format.bases import BasePath
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.names import data_file_name


def write_fragments(
    task: WriteTask,
    reader: pa.RecordBatchReader,
    *,
    ids: Ids,
    progress: Progress | None = None,
    watch: FileWatch | None = None,
) -> tuple[Fragment, ...]:
    """Write all rows of `reader` and return a fragment with id 0 for each data file.

    On local disk the files are durable when this returns. An error may leave files that no
    table refers to.
    """
    schema = ensure_fits(task.schema, reader.schema, casts=task.casts)
    ensure_storable(schema, task.file_version, newest_readers_only=task.newest_readers_only)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="settle") as settling:
        output = _Output(
            task=task,
            conform=Conformer(schema, task.file_version, task.text),
            ids=ids,
            progress=progress,
            watch=watch,
            settling=settling,
        )
        for batch in gathered(output.announcing(reader), _gathered_bytes(task.pages)):
            for piece in pieces(batch, min(PIECE_BYTES, task.full_at_bytes)):
                output.write(piece)
        return output.finish()


def _gathered_bytes(pages: PageSizes) -> int:
    """Return the size of the batches that the codec gets: it fills its cache with them."""
    cache = pages.data_cache_bytes
    return LEAST_BYTES if cache is None else min(cache, LEAST_BYTES)


@dataclass(slots=True, kw_only=True)
class _Output:
    """Files of one call, of which the last is open."""

    task: WriteTask
    conform: Conformer
    ids: Ids
    progress: Progress | None
    watch: FileWatch | None
    settling: ThreadPoolExecutor
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

    def _writer(self) -> DataFileWriter:
        if self._open is None:
            self._settle_aside()
            name = data_file_name(self.ids.uuid4())
            base = self.task.bases[len(self._fragments) % len(self.task.bases)]
            self._open = DataFileWriter(self.task, self.conform.schema, name, base)
            self._last_in[base] = self._open
            if self.watch is not None:
                self.watch.begun(Fragment(id=FragmentId(0), files=(self._open.begun,)))
        return self._open

    def _close(self, writer: DataFileWriter) -> None:
        entry = writer.close()
        self._open = None
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
