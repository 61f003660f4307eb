"""Readers of the official codec for single files, with a cache of open ones."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lancelake.data.codec import spool
from lancelake.data.codec.official import file_reader
from lancelake.data.recently_used import RecentlyUsed
from lancelake.errors import (
    CorruptTableError,
    LanceTableError,
    ObjectNotFoundError,
    StorageDeniedError,
    StorageUnavailableError,
    UnsupportedError,
)
from lancelake.process import after_fork
from lancelake.storage.io_account import BufferRead, ColumnRead, current_account
from lancelake.storage.location import Location
from lancelake.storage.open import open_store
from lancelake.storage.table_files import FileAt
from lancelake.storage.trust import local_path

if TYPE_CHECKING:
    from lance.file import LanceFileReader

_OPEN_READERS = 128
# The codec reads as much to open a file.
_END_BYTES = 64 << 10
# Index files of releases before 0.20 may have it.
_LEGACY = "to read v1 metadata"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Columns and rows of a file, and the version numbers at its end."""

    schema: pa.Schema
    rows: int
    major: int
    minor: int


class CodecReader:
    """Thread-safe reader of the codec.

    The codec rejects a call while another thread's call on the same reader runs; the returned
    streams do not have this limit. Reads are added to the I/O account of the running operation.
    """

    def __init__(
        self, reader: LanceFileReader, place: FileAt, columns: tuple[str, ...] | None
    ) -> None:
        self._reader: LanceFileReader | None = reader
        self._place = place
        self._columns = columns
        self._lock = threading.Lock()
        self._num_rows = int(reader.num_rows())
        self._num_columns: int | None = None
        _open_readers.add(self)

    def num_rows(self) -> int:
        """Row count of the file."""
        return self._num_rows

    @property
    def num_columns(self) -> int:
        """Number of physical columns of the file."""
        if self._num_columns is None:
            self._num_columns = len(self.column_sizes())
        return self._num_columns

    def read_range(
        self, start: int, count: int, *, batch_rows: int, readahead: int
    ) -> pa.RecordBatchReader:
        """Stream consecutive rows."""
        self.account(range(start, start + count))
        with self._alone() as reader:
            result = reader.read_range(
                start, count, batch_size=batch_rows, batch_readahead=readahead
            )
            return result.to_batches()

    def take_rows(self, rows: list[int], *, readahead: int) -> pa.RecordBatchReader:
        """Stream rows at sorted, unique offsets in one batch."""
        self.account(rows)
        with self._alone() as reader:
            # The public wrapper checks the order of the rows one by one, in Python.
            return reader._reader.take_rows(rows, len(rows), readahead)

    def read_global_buffer(self, index: int) -> bytes:
        """Return one of the file's global buffers."""
        with self._alone() as reader:
            found = bytes(reader.read_global_buffer(index))
        account = current_account()
        # The first is the schema, which is read to open a file.
        if account is not None and index > 0:
            account.add(BufferRead(place=self._place, size_bytes=len(found)))
        return found

    def facts(self) -> FileFacts:
        """Metadata of the file."""
        with self._alone() as reader:
            found = reader.metadata()
        return FileFacts(
            schema=found.schema,
            rows=int(found.num_rows),
            major=int(found.major_version),  # type: ignore[attr-defined]  # the stubs lack it
            minor=int(found.minor_version),  # type: ignore[attr-defined]  # the stubs lack it
        )

    def column_sizes(self) -> list[int]:
        """Size of each column in bytes."""
        with self._alone() as reader:
            statistics = reader.file_statistics()
        return [int(column.size_bytes) for column in statistics.columns]

    def account(self, rows: range | Sequence[int]) -> None:
        """Add a read of rows to the I/O account of the running operation."""
        account = current_account()
        if account is not None and not spool.holds(self._place):
            account.add(ColumnRead(place=self._place, columns=self._columns, rows=rows))

    @contextmanager
    def _alone(self) -> Iterator[LanceFileReader]:
        with self._lock:
            if self._reader is None:
                self._reader = _opened(self._place, self._columns)
            yield self._reader

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


_readers: RecentlyUsed[tuple[FileAt, tuple[str, ...] | None], CodecReader] = RecentlyUsed(
    _OPEN_READERS
)


def open_reader(place: FileAt, columns: tuple[str, ...] | None) -> CodecReader:
    """Open a data file for some of its columns, by the codec's names."""
    return _readers.get((place, columns), lambda: _open(place, columns))


def expect_reader(place: FileAt) -> None:
    """Start to load the end of a local file, which is read to open it; others are left alone."""
    if place.root.scheme != "file" or not hasattr(os, "posix_fadvise"):
        return
    # A file that cannot be read is reported when it is opened.
    with suppress(OSError, LanceTableError):
        descriptor = os.open(regular_file(place), os.O_RDONLY | os.O_NONBLOCK)
        try:
            start = max(0, os.fstat(descriptor).st_size - _END_BYTES)
            os.posix_fadvise(descriptor, start, 0, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(descriptor)


def forget_readers(uris: Collection[str]) -> None:
    """Close removed files, which use disk space while they are open."""
    _readers.forget(lambda key: key[0].uri in uris)


def forget_readers_below(root: Location) -> None:
    """Close the files of a table that was removed."""
    _readers.forget(lambda key: key[0].uri.startswith(f"{root.uri}/"))


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a local folder for data files, which are closed before they are removed."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name:
        folder = Path(name)
        try:
            yield folder
        finally:
            forget_readers_below(Location.parse(folder))


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Translate the codec's errors, including panics, into one that names the file."""
    try:
        yield
    except LanceTableError:
        raise
    except (OSError, ValueError, RuntimeError, pa.ArrowException) as error:
        raise _unreadable(path, error) from error
    except BaseException as error:
        # A panic in the codec's Rust code is not an Exception, and its class has no public name.
        if type(error).__name__ != "PanicException":
            raise
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: BaseException) -> LanceTableError:
    if _LEGACY in str(error):
        return UnsupportedError(f"data file {path} has the legacy format", path=path)
    return CorruptTableError(f"data file {path} cannot be read: {error}", path=path)


def _open(place: FileAt, columns: tuple[str, ...] | None) -> CodecReader:
    try:
        with explained(place.path):
            return CodecReader(_opened(place, columns), place, columns)
    except CorruptTableError as error:
        raise _reason(place, error) from error.__cause__


def _opened(place: FileAt, columns: tuple[str, ...] | None) -> LanceFileReader:
    names = None if columns is None else list(columns)
    uri, options = _address(place)
    return file_reader(uri, storage_options=options or None, columns=names)


def _address(place: FileAt) -> tuple[str, dict[str, str]]:
    if place.root.scheme == "memory":
        try:
            return spool.local_copy(place), {}
        except ObjectNotFoundError as error:
            raise _unreadable(place.path, error) from error
    if place.root.scheme == "file":
        return regular_file(place), {}
    return place.uri, place.root.storage_options


def regular_file(place: FileAt) -> str:
    """Return the path of a regular file; to read a pipe would block, and a device not end."""
    path = local_path(place.root, place.path)
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  # paths are plain text here
        raise OSError(f"{path} is not a regular file")
    return path


def _reason(place: FileAt, error: CorruptTableError) -> LanceTableError:
    """Find the cause of an error by accessing the file through the store."""
    try:
        missing = not open_store(place.root).exists(place.path)
    except (StorageDeniedError, StorageUnavailableError) as denied:
        return denied
    if missing:
        return CorruptTableError(f"data file {place.path} is missing", path=place.path)
    return error
