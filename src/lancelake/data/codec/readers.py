"""Reading files with the official codec: each read delivers the rows it was asked for."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import pyarrow as pa

from lancelake import errors
from lancelake.caches import CacheKind
from lancelake.data.codec import official
from lancelake.data.codec.file_ends import container_at, regular_file, sound_end
from lancelake.data.codec.file_layout import Container
from lancelake.data.codec.official import file_reader
from lancelake.data.codec.row_bounds import UncheckedRows, unchecked_rows
from lancelake.data.codec.stored_offsets import UncheckedPages, columns_named, unchecked_pages
from lancelake.storage.instrumented import BufferRead, ColumnRead, current_account
from lancelake.storage.location import Location
from lancelake.storage.table_files import FileAt
from lancelake.threads import after_fork, aside

if TYPE_CHECKING:
    from lance.file import LanceFileReader


class DeliveredRows:
    """Batches of one read; raises if they have other rows than were asked for."""

    def __init__(self, begin: Callable[[], pa.RecordBatchReader], rows: int, path: str) -> None:
        """Read what `begin` returns, which is called for the first batch."""
        self._begin = begin
        self._stream: pa.RecordBatchReader | None = None
        self._asked = self._left = rows
        self._path = path

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        # To ask for the end of the codec's stream takes time, and proves nothing.
        if not self._left:
            raise StopIteration
        batch = aside(self._next)
        delivered = 0 if batch is None else batch.num_rows
        if batch is None or delivered > self._left:
            ensure_delivered(self._asked - self._left + delivered, self._asked, self._path)
        self._left -= delivered
        return batch

    def _next(self) -> pa.RecordBatch | None:
        if self._stream is None:
            self._stream = self._begin()
        return next(self._stream, None)


def ensure_delivered(rows: int, asked: int, path: str) -> None:
    """Raise if a read delivered other rows than it was asked for."""
    if rows != asked:
        problem = f"data file {path} delivered {rows} rows of the {asked} that were asked for"
        raise errors.CorruptTableError(problem, path=path)


Result = TypeVar("Result")

_OPEN_READERS = 128
# The codec reads as much to open a file.
_END_BYTES = 64 << 10
# Index files of releases before 0.20 may have it.
_LEGACY = "to read v1 metadata"
_CODEC_ERRORS = (OSError, ValueError, RuntimeError, pa.ArrowException)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Columns and rows of a file, and the version numbers at its end."""

    schema: pa.Schema
    rows: int
    major: int
    minor: int


class LegacyFormatError(errors.UnsupportedError):
    """A file has the legacy format, which the codec does not read."""


class CodecReader:
    """Thread-safe reader of the codec.

    The codec rejects a call while another thread's call on the same reader runs; the returned
    streams do not have this limit. Reads are added to the I/O account of the running operation.
    """

    def __init__(
        self,
        reader: LanceFileReader,
        place: FileAt,
        columns: tuple[str, ...] | None = None,
        *,
        name: str | None = None,
    ) -> None:
        """Read a file, which errors call by its path unless it has another name."""
        self._reader: LanceFileReader | None = reader
        self._place = place
        self._name = name or place.path
        self._columns = columns
        self._lock = threading.Lock()
        self._num_rows = int(reader.num_rows())
        self._unchecked = _unchecked_pages(place, columns)
        _open_readers.add(self)

    def num_rows(self) -> int:
        """Row count of the file."""
        return self._num_rows

    def read_range(
        self, start: int, count: int, *, batch_rows: int, readahead: int
    ) -> DeliveredRows:
        """Stream consecutive rows."""
        rows = range(start, start + count)
        self.account(rows)

        def begin(reader: LanceFileReader) -> pa.RecordBatchReader:
            self._check(rows)
            return reader._reader.read_range(start, count, batch_rows, readahead)

        return DeliveredRows(lambda: self._alone(begin), count, self._name)

    def take_rows(self, rows: list[int], *, readahead: int) -> DeliveredRows:
        """Stream rows at sorted, unique offsets in one batch."""
        self.account(rows)

        # The public wrapper checks the order of the rows one by one, in Python.
        def begin(reader: LanceFileReader) -> pa.RecordBatchReader:
            self._check(rows)
            return reader._reader.take_rows(rows, len(rows), readahead)

        return DeliveredRows(lambda: self._alone(begin), len(rows), self._name)

    def read_global_buffer(self, index: int) -> bytes:
        """Return one of the file's global buffers."""
        content = bytes(self._driven(lambda reader: reader.read_global_buffer(index)))
        account = current_account()
        # The first is the schema, which is read to open a file.
        if account is not None and index > 0:
            account.add(BufferRead(place=self._place, size_bytes=len(content)))
        return content

    def facts(self) -> FileFacts:
        """Metadata of the file."""
        metadata = self._driven(lambda reader: reader.metadata())
        return FileFacts(
            schema=metadata.schema,
            rows=int(metadata.num_rows),
            major=int(metadata.major_version),  # type: ignore[attr-defined]  # the stubs lack it
            minor=int(metadata.minor_version),  # type: ignore[attr-defined]  # the stubs lack it
        )

    def column_sizes(self) -> list[int]:
        """Size of each column in bytes."""
        statistics = self._driven(lambda reader: reader.file_statistics())
        return [int(column.size_bytes) for column in statistics.columns]

    def account(self, rows: range | Sequence[int]) -> None:
        """Add a read of rows to the I/O account of the running operation."""
        account = current_account()
        if account is not None and not official.holds(self._place):
            account.add(ColumnRead(place=self._place, columns=self._columns, rows=rows))

    def _check(self, rows: range | Sequence[int]) -> None:
        if self._unchecked is not None:
            self._unchecked.check(rows)

    def _driven(self, call: Callable[[LanceFileReader], Result]) -> Result:
        return aside(self._alone, call)

    def _alone(self, call: Callable[[LanceFileReader], Result]) -> Result:
        with explained(self._name), self._lock:
            if self._reader is None:
                self._reader = _opened(self._place, self._columns)
            return call(self._reader)

    def leave_to_parent(self) -> None:
        """Open the file again on next use, in a forked child."""
        # To close it would wait for threads that the child does not have.
        _left.append(self._reader)
        self._reader, self._lock = None, threading.Lock()


_open_readers: weakref.WeakSet[CodecReader] = weakref.WeakSet()
_left: list[LanceFileReader | None] = []


@after_fork
def _leave_to_parent() -> None:
    for reader in _open_readers:
        reader.leave_to_parent()


READERS: CacheKind[tuple[FileAt, tuple[str, ...] | None], CodecReader] = CacheKind(
    name="open_files", most_bytes=64 << 20, weight=lambda _: _END_BYTES, most_values=_OPEN_READERS
)


def open_reader(place: FileAt, columns: tuple[str, ...] | None) -> CodecReader:
    """Open a data file for some of its columns, by the codec's names."""
    readers = place.root.session.caches[READERS]
    return readers.get((place, columns), lambda: aside(_open, place, columns))


def open_copy(path: Path, name: str) -> CodecReader:
    """Open a file of the spool, which errors call by another name; it is not kept open."""
    place = FileAt(root=Location.parse(path.parent), path=path.name)
    return aside(lambda: CodecReader(_opened(place, None), place, name=name))


def expect_reader(place: FileAt) -> None:
    """Start to load the end of a local file, which is read to open it; others are left alone."""
    if place.root.scheme != "file" or not hasattr(os, "posix_fadvise"):
        return
    # A file that cannot be read is reported when it is opened.
    with suppress(OSError, errors.LanceTableError):
        descriptor = os.open(regular_file(place), os.O_RDONLY | os.O_NONBLOCK)
        try:
            start = max(0, os.fstat(descriptor).st_size - _END_BYTES)
            os.posix_fadvise(descriptor, start, 0, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)


def forget_readers(root: Location, uris: Collection[str]) -> None:
    """Close removed files of a table, which use disk space while they are open."""
    root.session.caches[READERS].forget(lambda key: key[0].uri in uris)


def forget_readers_below(root: Location) -> None:
    """Close the files of a table that was removed."""
    root.session.caches[READERS].forget(lambda key: key[0].uri.startswith(f"{root.uri}/"))


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a local folder for data files, which are closed before they are removed."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            forget_readers_below(Location.parse(folder))


class explained(NamedTuple):  # noqa: N801  # used like a function; a generator costs more
    """Translates the codec's errors, including panics, into one that names the file."""

    path: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or isinstance(error, errors.LanceTableError):
            return
        # A panic in the codec's Rust code is not an Exception, and its class has no public name.
        if isinstance(error, _CODEC_ERRORS) or type(error).__name__ == "PanicException":
            raise _unreadable(self.path, error) from error


def _unreadable(path: str, error: BaseException) -> errors.LanceTableError:
    if _LEGACY in str(error):
        return LegacyFormatError(f"data file {path} has the legacy format", path=path)
    return errors.CorruptTableError(f"data file {path} cannot be read: {error}", path=path)


def open_end(place: FileAt) -> Container:
    """Return the end of a data file, without its columns."""
    with _opening(place):
        return container_at(place)


def _open(place: FileAt, columns: tuple[str, ...] | None) -> CodecReader:
    with _opening(place):
        return CodecReader(_opened(place, columns), place, columns)


def _unchecked_pages(
    place: FileAt, columns: tuple[str, ...] | None
) -> UncheckedPages | UncheckedRows | None:
    end = sound_end(place)
    if end is None:
        return None
    is_near = place.root.scheme in {"file", "memory"} or end.tail_start == 0
    if not end.version.leaves_only:
        return unchecked_pages(end, columns_named(end, columns), is_near=is_near)
    if not end.bounded_columns or not is_near:
        return None
    return unchecked_rows(place, end, end.bounded_columns.intersection(columns_named(end, columns)))


@contextmanager
def _opening(place: FileAt) -> Iterator[None]:
    try:
        with explained(place.path):
            yield
    except errors.ObjectNotFoundError as error:
        raise _missing(place) from error
    except errors.CorruptTableError as error:
        raise _reason(place, error) from error.__cause__


def _opened(place: FileAt, columns: tuple[str, ...] | None) -> LanceFileReader:
    names = None if columns is None else list(columns)
    end = sound_end(place)
    if place.root.scheme == "file":
        return file_reader(regular_file(place), columns=names)
    if place.root.scheme == "memory":
        return file_reader(official.local_copy(place), columns=names)
    if end is not None and end.tail_start == 0:
        with official.temporary_file(end.tail) as path:
            return file_reader(path, columns=names)
    return file_reader(place.uri, storage_options=place.root.storage_options or None, columns=names)


def _reason(place: FileAt, error: errors.CorruptTableError) -> errors.LanceTableError:
    """Find the cause of an error by accessing the file through the store."""
    try:
        missing = not place.store.exists(place.path)
    except (errors.StorageDeniedError, errors.StorageUnavailableError) as denied:
        return denied
    return _missing(place) if missing else error


def _missing(place: FileAt) -> errors.CorruptTableError:
    return errors.CorruptTableError(f"data file {place.path} is missing", path=place.path)


def row_width(dtype: pa.DataType) -> int | None:
    """Return the bytes of a row of vectors of numbers; None for other types."""
    if not pa.types.is_fixed_size_list(dtype) or not dtype.list_size:
        return None
    item = dtype.value_type
    is_number = pa.types.is_floating(item) or pa.types.is_integer(item)
    return dtype.list_size * item.bit_width // 8 if is_number else None
