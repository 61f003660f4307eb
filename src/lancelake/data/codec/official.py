"""Official codec, and its native library in forked processes.

A fork copies the memory of the library, but not its threads, and the library cannot start others:
calls in a child of a process that has used it would never return. Such a child loads a copy of
the library's file, which the system takes for another library, with threads of its own.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import shutil
import sys
import tempfile
import threading
from importlib.machinery import ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from lancelake.errors import UnsupportedError
from lancelake.threads import SPAWN, after_fork, before_fork

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
        raise UnsupportedError(msg, action=SPAWN) from error
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
