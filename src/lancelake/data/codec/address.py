"""Where the codec reads and writes: stores, files spooled to the disk, its open writers."""

from __future__ import annotations

import atexit
import hashlib
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lancelake.data.codec.official import file_writer
from lancelake.errors import (
    InternalError,
    LanceTableError,
    SchemaMismatchError,
    StorageError,
    UnsupportedError,
)
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from lancelake.storage.store import DiskErrors, ObjectChunks, copy_across
from lancelake.storage.table_files import FileAt, local_path
from lancelake.threads import after_fork, aside_to_end

if TYPE_CHECKING:
    from lance.file import LanceFileWriter

_numbers = itertools.count()


class _Folder:
    """Temporary folder of this process, created on first use."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.parent: Path | None = None
        self.lock = threading.Lock()

    def forget(self) -> None:
        """Leave the folder and its lock to the parent process."""
        self.path, self.lock = None, threading.Lock()


_folder = _Folder()
after_fork(_folder.forget)


def folder() -> Path:
    """Return the folder of this process, which is removed at exit."""
    with _folder.lock:
        if _folder.path is None:
            _folder.path = Path(tempfile.mkdtemp(prefix="lancelake-", dir=_folder.parent))
            atexit.register(_remove, _folder.path, os.getpid())
        return _folder.path


def holds(place: FileAt) -> bool:
    """Whether a file is in the folder of this process, so that reading it is no I/O of a table."""
    path = _folder.path
    return path is not None and place.root.scheme == "file" and place.root.uri.startswith(str(path))


def use_parent(parent: Path) -> None:
    """Create the folder of this process and of its forks below another one.

    For processes that are killed, and whose owner removes the parent.
    """
    _folder.parent = parent


def _remove(path: Path, pid: int) -> None:
    # A forked child inherits its parent's exit handlers.
    if pid == os.getpid():
        shutil.rmtree(path, ignore_errors=True)


def spooled_path(*parts: str) -> Path:
    """Return the path for a copy identified by these parts."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return folder() / f"{digest}.lance"


def fresh_path() -> Path:
    """Return a path that no other file of this process has."""
    return folder() / f"{next(_numbers)}.lance"


@contextmanager
def temporary_file(data: bytes) -> Iterator[str]:
    """Write bytes to local disk, to be opened within the block: an open file outlives its name."""
    path = fresh_path()
    try:
        path.write_bytes(data)
        yield str(path)
    finally:
        path.unlink(missing_ok=True)


def local_copy(place: FileAt) -> str:
    """Copy a file to local disk, once per process, and return its path."""
    target = spooled_path(place.uri)
    if not target.exists():
        store = place.store
        source = ObjectChunks(store=store, path=place.path)
        copy_across(source, Location.parse(target.parent).store, target.name)
    return str(target)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecAddress:
    """A file and the address at which the codec writes it."""

    place: FileAt
    local: Path | None
    """The local path: the file's own, or that of a copy to upload."""

    @staticmethod
    def of(place: FileAt) -> CodecAddress:
        """Choose the address; create folders on local disk."""
        match place.root.scheme:
            case "file":
                path = Path(local_path(place.root, place.path))
                with DiskErrors(place.path, writes=True):
                    disk_sync.make_folder(str(path.parent))
                return CodecAddress(place=place, local=path)
            case "memory":
                return CodecAddress(place=place, local=fresh_path())
            case _:
                return CodecAddress(place=place, local=None)

    @property
    def uri(self) -> str:
        """Address for the codec."""
        return self.place.uri if self.local is None else str(self.local)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """Storage options for the codec."""
        return None if self.local is not None else self.place.root.storage_options or None

    @property
    def is_in_place(self) -> bool:
        """Whether the codec writes directly to local disk."""
        return self.place.root.scheme == "file"

    def arrived(self) -> None:
        """Move a finished file to its location; on local disk, sync its bytes."""
        if self.local is None:
            return
        if self.is_in_place:
            with DiskErrors(self.place.path, writes=True):
                disk_sync.sync_file(self.local)
            return
        store = Location.parse(self.local.parent).store
        source = ObjectChunks(store=store, path=self.local.name)
        copy_across(source, self.place.store, self.place.path)
        self.local.unlink()


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Translate the codec's errors, including panics, into one that names the file."""
    try:
        yield
    except LanceTableError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise _explained(path, error) from error
    except BaseException as error:
        # A panic in the codec's Rust code is not an Exception, and its class has no public name.
        if type(error).__name__ != "PanicException":
            raise
        msg = f"data file {path} cannot be written: {error}"
        raise InternalError(msg, path=path) from error


def _explained(path: str, error: Exception) -> LanceTableError:
    problem = f"data file {path} cannot be written: {error}"
    if "Not supported" in str(error):
        return UnsupportedError(problem, path=path)
    if "Invalid user input" in str(error):
        return SchemaMismatchError(problem, path=path)
    return StorageError(problem, path=path)


# Changing to another thread takes longer than writing fewer bytes.
_HELD_BYTES = 1 << 20

Result = TypeVar("Result")


class CodecWriter:
    """Writes one file; errors name it, and closing it compares the rows in it with those given.

    The file is opened, and small batches are written, with the next larger one or at the end.
    """

    def __init__(
        self, address: CodecAddress, name: str, schema: pa.Schema, *, version: str, **options: Any
    ) -> None:
        self._name = name
        self._rows = 0
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._codec: LanceFileWriter | None = None
        self._open: Callable[[], LanceFileWriter] = lambda: file_writer(
            address.uri,
            schema,
            version=version,
            storage_options=address.storage_options,
            **options,
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._rows += batch.num_rows
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= _HELD_BYTES:
            self._driven(lambda _: None)

    def add_buffer(self, data: bytes) -> int:
        """Add a global buffer and return its number."""
        return int(self._driven(lambda codec: codec.add_global_buffer(data)))

    def close(self, metadata: dict[str, str] | None = None) -> int:
        """Finish the file with metadata of its schema, and return its size in bytes."""

        def finish(codec: LanceFileWriter) -> tuple[int | None, int | None]:
            for key, value in (metadata or {}).items():
                codec.add_schema_metadata(key, value)
            return codec.close(), codec.size_bytes

        rows, size = self._driven(finish)
        if rows != self._rows:
            msg = f"data file {self._name} has {rows} rows, but {self._rows} were written"
            raise InternalError(msg, path=self._name)
        return size or 0

    def abandon(self) -> None:
        """End a file whose rows are not complete: an open upload could not be removed."""
        self._held, self._held_bytes = [], 0
        if self._codec is not None:
            self._driven(lambda codec: codec.close())

    def _driven(self, call: Callable[[LanceFileWriter], Result]) -> Result:
        batches, self._held, self._held_bytes = self._held, [], 0
        return aside_to_end(self._written, batches, call)

    def _written(
        self, batches: list[pa.RecordBatch], call: Callable[[LanceFileWriter], Result]
    ) -> Result:
        with writing(self._name):
            if self._codec is None:
                self._codec = self._open()
            for batch in batches:
                self._codec.write_batch(batch)
            return call(self._codec)
