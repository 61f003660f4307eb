"""The official codec: its library, and the files that it reads and writes."""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import importlib
import itertools
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from lancelake import errors
from lancelake.storage import disk_sync
from lancelake.storage.location import Location
from lancelake.storage.store import DiskErrors, ObjectChunks, copy_across
from lancelake.storage.table_files import FileAt, local_path
from lancelake.threads import SPAWN, after_fork, aside_to_end, before_fork

if TYPE_CHECKING:
    from lance.file import LanceFileReader, LanceFileSession, LanceFileWriter

_PACKAGE = "lance"
_EXTENSION = "lance"
# A panic of the library in a thread of its own is an error; in the thread of the caller, where it
# decodes small batches by default, a damaged file would end the process.
_DECODE_MODE, _IN_OWN_THREADS = "LANCE_STRUCTURAL_BATCH_DECODE_SPAWN_MODE", "always"


class _Library:
    """The package of the codec that the running process can use."""

    def __init__(self) -> None:
        self._package = _PACKAGE
        self._user: int | None = None
        self._lock = threading.Lock()
        self._for_children: IO[bytes] | None = None
        self._of_parent: IO[bytes] | None = None

    def package(self) -> str:
        """Name of the package whose threads this process has, or may start."""
        if self._user != os.getpid():
            with self._lock:
                os.environ.setdefault(_DECODE_MODE, _IN_OWN_THREADS)
                if self._user is not None and self._user != os.getpid():
                    self._package = _copied_package(self._of_parent)
                self._user = os.getpid()
        return self._package

    def is_loaded(self) -> bool:
        """Whether this process has used the library."""
        return self._user == os.getpid() and f"{self._package}.{_EXTENSION}" in sys.modules

    def prepare_fork(self) -> None:
        """Create the file that children share for their copy; the first that needs it fills it."""
        if self._user == os.getpid() and self._for_children is None:
            self._for_children = _unnamed_file()

    def forked(self) -> None:
        """Start in a child: its parent's threads are lost, and may hold the lock."""
        self._of_parent = self._for_children or self._of_parent
        self._for_children, self._lock = None, threading.Lock()


_library = _Library()
before_fork(_library.prepare_fork)
after_fork(_library.forked)


def codec_module(name: str) -> ModuleType:
    """Import a module of the codec's package for this process."""
    return importlib.import_module(f"{_library.package()}.{name}")


def preload_codec() -> None:
    """Import the codec's package without using it, for children that are forked later.

    Its threads start with the first use: a child can use the library if its parent has not.
    """
    importlib.import_module(f"{_PACKAGE}.file")


def codec_is_loaded() -> bool:
    """Whether this process has used the codec."""
    return _library.is_loaded()


def _copied_package(shared: IO[bytes] | None) -> str:
    """Import a copy of the package, without its initialization, and return its name."""
    name = f"_{_PACKAGE}_of_{os.getpid()}"
    try:
        file = shared or _unnamed_file()
        if file is None:
            raise OSError("unnamed files are not supported")  # reported below
        source = find_spec(f"{_PACKAGE}.{_EXTENSION}")
        if source is None or source.origin is None:
            raise ImportError(_EXTENSION)  # reported below
        _fill(file, Path(source.origin))
        package = ModuleType(name)
        package.__path__ = [str(Path(source.origin).parent)]
        sys.modules[name] = package
        # The process id keeps the system from finding the library of the parent by this path.
        _load(f"{name}.{_EXTENSION}", f"/proc/{os.getpid()}/fd/{file.fileno()}")
    except (OSError, ImportError) as error:
        sys.modules.pop(name, None)
        msg = f"a forked process cannot use the codec that its parent has used: {error}"
        raise errors.UnsupportedError(msg, action=SPAWN) from error
    return name


def _load(name: str, path: str) -> None:
    loader = ExtensionFileLoader(name, path)
    spec = spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)


def _fill(file: IO[bytes], source: Path) -> None:
    """Copy the library, unless another process has: each takes the lock in turn."""
    fcntl.lockf(file, fcntl.LOCK_EX)
    try:
        if os.fstat(file.fileno()).st_size != source.stat().st_size:
            file.seek(0)
            file.truncate()
            with source.open("rb") as original:
                shutil.copyfileobj(original, file, 1 << 20)
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN)


def _unnamed_file() -> IO[bytes] | None:
    """Open a temporary file that disappears with the processes that use it."""
    if sys.platform != "linux":
        return None
    try:
        return tempfile.TemporaryFile(buffering=0, prefix="lancelake-")  # stays open
    except OSError:
        return None


def file_reader(*args: Any, **options: Any) -> LanceFileReader:
    """Open a file for reading."""
    reader: LanceFileReader = codec_module("file").LanceFileReader(*args, **options)
    return reader


def file_writer(*args: Any, **options: Any) -> LanceFileWriter:
    """Open a file for writing."""
    writer: LanceFileWriter = codec_module("file").LanceFileWriter(*args, **options)
    return writer


def file_session(*args: Any, **options: Any) -> LanceFileSession:
    """Open a folder of files."""
    session: LanceFileSession = codec_module("file").LanceFileSession(*args, **options)
    return session


def file_member(name: str) -> Any:
    """Return a public name of the codec's module for single files."""
    return getattr(codec_module("file"), name)


def arrow_member(name: str) -> Any:
    """Return a public name of the codec's Arrow types.

    Arrow knows one type of a name in a process, and the codec registers its own.
    """
    from lance import arrow  # noqa: PLC0415  # it loads slowly

    return getattr(arrow, name)


def blob_member(name: str) -> Any:
    """Return a class of the blob values that file sessions of the codec return and take."""
    return getattr(codec_module("lance"), name)


def counter(name: str) -> int:
    """Return a counter of the codec: of the reads of all files since the process started."""
    return int(getattr(codec_module("lance"), name)())


def reads_so_far() -> tuple[int, int]:
    """Return the requests and the bytes of the codec's reads; an unused codec is not loaded."""
    if not codec_is_loaded():
        return 0, 0
    return counter("iops_counter"), counter("bytes_read_counter")


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
    except errors.LanceTableError:
        raise
    except (OSError, ValueError, RuntimeError) as error:
        raise _explained(path, error) from error
    except BaseException as error:
        # A panic in the codec's Rust code is not an Exception, and its class has no public name.
        if type(error).__name__ != "PanicException":
            raise
        msg = f"data file {path} cannot be written: {error}"
        raise errors.InternalError(msg, path=path) from error


def _explained(path: str, error: Exception) -> errors.LanceTableError:
    problem = f"data file {path} cannot be written: {error}"
    if "Not supported" in str(error):
        return errors.UnsupportedError(problem, path=path)
    if "Invalid user input" in str(error):
        return errors.SchemaMismatchError(problem, path=path)
    return errors.StorageError(problem, path=path)


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
            raise errors.InternalError(msg, path=self._name)
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
