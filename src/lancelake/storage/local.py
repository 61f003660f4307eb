"""Files of the local disk.

Object stores have no folders. On disk, empty folders would look like a table or a branch.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from lancelake import errors
from lancelake.interrupts import pass_on
from lancelake.storage import disk_sync, store

# Pipes and terminals are opened without blocking, and then refused.
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_STAGE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MODE = 0o666
_CHUNK_BYTES = 1024 * 1024
# Unfinished files are named `<name>#<number>`, as in object_store: both ignore each other's.
_STAGED = re.compile(r"#\d+\Z")
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


class LocalStore:
    """Objects as files; a write is on disk before it returns."""

    __slots__ = ("_root", "_within")

    def __init__(self, root: str, *, within: tuple[str, ...] | None = None) -> None:
        """Create a store in the folder `root`, an absolute path that may not exist yet.

        With `within`, folders without links in their paths, links cannot lead outside of them.
        """
        self._root = root.rstrip("/")
        self._within = within

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        with store.DiskErrors(path), self._opened(path) as (fd, size):
            return _read(fd, 0, size)

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        store.ensure_range(path, start, length)
        if length == 0:
            return b""
        with store.DiskErrors(path), self._opened(path) as (fd, size):
            # Memory is allocated for the whole range, so it is limited to the file.
            data = _read(fd, min(start, size), max(0, min(length, size - start)))
        return store.ensure_whole(data, path, start, length)

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        store.ensure_range(path, 0, length)
        with store.DiskErrors(path), self._opened(path) as (fd, size):
            start = max(0, size - length)
            return _read(fd, start, size - start), size

    def head(self, path: str) -> store.ObjectInfo:
        """Describe an object."""
        full = self._full(path)
        with store.DiskErrors(path):
            status = os.stat(full)  # noqa: PTH116  # half the time of Path.stat
            if not S_ISREG(status.st_mode):
                raise errors.ObjectNotFoundError(f"no object at {path!r}", path=path)
            return _info(path, status)

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        full = self._full(path)
        with store.DiskErrors(path):
            try:
                return S_ISREG(os.stat(full).st_mode)  # noqa: PTH116  # half the time of Path.stat
            except (FileNotFoundError, NotADirectoryError):
                return False

    def list(self, prefix: str = "") -> Iterator[store.ObjectInfo]:
        """Describe every object below a folder; a link to a folder is not followed."""
        folders = [] if has_link(self._root, prefix) else [prefix]
        while folders:
            folder = folders.pop()
            start = f"{folder}/" if folder else ""
            for entry in self._entries(folder):
                path = start + entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif _is_file(entry):
                    info = _entry_info(path, entry)
                    if info is not None:
                        yield info

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        return [
            name
            for entry in self._entries(directory)
            if not ("#" in (name := entry.name) and is_staged(name))
            # Only a link needs the slower question.
            and (entry.is_file(follow_symlinks=False) or _is_file(entry))
        ]

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        return [entry.name for entry in self._entries(directory) if _is_folder(entry)]

    def smallest_names(
        self,
        directory: str,  # noqa: ARG002  # the protocol asks for it
        *,
        limit: int,  # noqa: ARG002  # the protocol asks for it
    ) -> builtins.list[str] | None:
        """Return None: folders are not listed in order."""
        return None

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other."""
        fill = lambda fd: _write_all(fd, (data,))  # noqa: E731  # as the others
        self._publish(path, fill, _replace, durable=durable)

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        self._publish(path, lambda fd: _write_all(fd, chunks), _replace)

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free."""
        self._publish(path, lambda fd: _write_all(fd, (data,)), _link)

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced.

        Swaps in a folder are serialized; a concurrent `put` is not blocked.
        """
        with store.DiskErrors(path), _held(_parent(self._full(path))):
            if self.get(path) != expected:
                return False
            self.put(path, data)
            return True

    def copy(self, source: str, target: str) -> None:
        """Copy a file, replacing the target."""
        with store.DiskErrors(source), self._opened(source) as (fd, _):
            self._publish(target, lambda staged: _write_all(staged, _chunks(fd)), _replace)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        self.delete_many((path,))

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist, but none behind a link below the root."""
        free: set[str] = set()
        for path in paths:
            full = self._full(path, follows_last=False)
            folder = path.rpartition("/")[0]
            if folder not in free:
                ensure_no_link(self._root, folder)
                free.add(folder)
            try:
                os.unlink(full)  # noqa: PTH108  # half the time of Path.unlink
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store.from_disk(error, path, writes=True) from error

    def _full(self, path: str, *, follows_last: bool = True) -> str:
        store.ensure_plain(path)
        full = f"{self._root}/{path}"
        if self._within is not None:
            store.ensure_below(full if follows_last else _parent(full), self._within)
        return full

    def _opened(self, path: str) -> _OpenFile:
        """Open a file for reading, in a `with` block."""
        return _OpenFile(self._full(path), path)

    def _entries(self, directory: str) -> Iterator[os.DirEntry[str]]:
        full = self._full(directory) if directory else self._root or "/"
        with store.DiskErrors(directory):
            try:
                entries = os.scandir(full)
            except (FileNotFoundError, NotADirectoryError):
                return
            with entries:
                yield from entries

    def _publish(
        self,
        path: str,
        fill: Callable[[int], None],
        give_name: Callable[[str, str], None],
        *,
        durable: bool = True,
    ) -> None:
        """Write a file under a temporary name, then rename it atomically."""
        full = self._full(path)
        with store.DiskErrors(path, writes=True):
            staged, fd = _staged(full)
            try:
                try:
                    fill(fd)
                    if durable:
                        disk_sync.settle(fd)
                finally:
                    os.close(fd)
                give_name(staged, full)
            except BaseException:
                Path(staged).unlink(missing_ok=True)
                raise
            if durable:
                disk_sync.sync_folder(_parent(full))


class _OpenFile:
    """A file that is open for reading in a `with` block, with its descriptor and its size.

    A generator would cost more than the system calls of a small read.
    """

    __slots__ = ("_fd", "_size")

    def __init__(self, full: str, path: str) -> None:
        self._fd = os.open(full, _READ)
        status = os.fstat(self._fd)
        self._size = status.st_size
        if not S_ISREG(status.st_mode):
            os.close(self._fd)
            raise errors.ObjectNotFoundError(f"{path!r} is not a regular file", path=path)

    def __enter__(self) -> tuple[int, int]:
        return self._fd, self._size

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def has_link(root: str, path: str) -> bool:
    """Whether a folder of a path below a root is a link."""
    names = path.split("/") if path else []
    return any(
        os.path.islink("/".join((root, *names[:count])))  # noqa: PTH114  # paths are plain text here
        for count in range(1, len(names) + 1)
    )


def ensure_no_link(root: str, path: str) -> None:
    """Raise for a path behind a link below a root, where nothing may be removed."""
    if has_link(root, path):
        raise errors.PlaceNotAllowedError(
            f"{path!r} is a link or behind a link, so nothing is removed there",
            table=root,
            path=path,
            action="Remove the link or its target by hand.",
        )


def _read(fd: int, start: int, length: int) -> bytes:
    """Read up to `length` bytes, fewer only at the end of the file."""
    data = os.pread(fd, length, start)
    if len(data) == length or not data:
        return data
    # One call returns at most 2 GiB.
    parts = [data]
    done = len(data)
    while done < length and (data := os.pread(fd, length - done, start + done)):
        parts.append(data)
        done += len(data)
    return b"".join(parts)


def _chunks(fd: int) -> Iterator[bytes]:
    for start in itertools.count(0, _CHUNK_BYTES):
        data = _read(fd, start, _CHUNK_BYTES)
        yield data
        if len(data) < _CHUNK_BYTES:
            return


def _write_all(fd: int, chunks: Iterable[bytes]) -> None:
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]


def _staged(full: str) -> tuple[str, int]:
    """Open a new file beside `full`, creating folders as needed."""
    try:
        return _fresh(full)
    except FileNotFoundError:
        disk_sync.make_folder(_parent(full))
        return _fresh(full)


def _fresh(full: str) -> tuple[str, int]:
    number = 1
    while True:
        staged = f"{full}#{number}"
        try:
            return staged, os.open(staged, _STAGE, _MODE)
        except FileExistsError:
            number += 1


@contextmanager
def _held(folder: str) -> Iterator[None]:
    """Lock a folder; the lock is released when the process ends."""
    fd = os.open(folder, _FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


# Both remove the staged name, which another writer may use from then on.
def _replace(staged: str, full: str) -> None:
    os.replace(staged, full)  # noqa: PTH105  # paths are plain text here


def _link(staged: str, full: str) -> None:
    try:
        os.link(staged, full)
    except FileExistsError as error:
        raise errors.AlreadyExistsError(
            f"an object already exists at {full!r}", path=full
        ) from error
    except OSError as error:
        if error.errno in _NO_LINKS:
            raise errors.UnsupportedError(
                f"the file system of {full!r} has no hard links, so commits there are not safe",
                action="Store the table on another file system.",
            ) from error
        raise
    os.unlink(staged)  # noqa: PTH108  # paths are plain text here


def _parent(full: str) -> str:
    return full.rpartition("/")[0] or "/"


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError as error:
        pass_on(error)
        # A broken link, such as one to itself.
        return False


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        pass_on(error)
        return False


def finished_name(staged: str) -> str:
    """Return the final name of an unfinished file."""
    return _STAGED.sub("", staged)


def is_staged(name: str) -> bool:
    """Whether a name is that of an unfinished file."""
    return "#" in name and _STAGED.search(name) is not None


def _entry_info(path: str, entry: os.DirEntry[str]) -> store.ObjectInfo | None:
    """Describe a listed file; None if it is unfinished or was removed."""
    if is_staged(entry.name):
        return None
    try:
        return _info(path, entry.stat())
    except FileNotFoundError:
        return None


def _info(path: str, status: os.stat_result) -> store.ObjectInfo:
    size_bytes, modified_ns = status.st_size, status.st_mtime_ns
    e_tag = f"{status.st_ino:x}-{modified_ns:x}-{size_bytes:x}"
    return store.ObjectInfo(path, size_bytes, modified_ns, e_tag)


def remove_leftovers(
    location: store.StorePlace, below: str = "", *, keep: tuple[str, ...] = ()
) -> None:
    """Remove links, unfinished files and empty folders in a folder of a table on local disk.

    Links are removed, never followed. Paths below those in `keep` stay.
    """
    if location.scheme != "file" or has_link(location.uri, below):
        return
    uris = tuple(f"{location.uri}/{path}" for path in keep)
    for folder, names in _folders(f"{location.uri}/{below}".rstrip("/")):
        if f"{folder}/".startswith(uris):
            continue
        for path in (f"{folder}/{name}" for name in names):
            with store.DiskErrors(path, writes=True), contextlib.suppress(FileNotFoundError):
                if is_staged(path) or not stat.S_ISREG(Path(path).lstat().st_mode):
                    Path(path).unlink()
        _remove_if_empty(folder)


def unfinished_files(
    location: store.StorePlace, folders: Iterable[str]
) -> Iterator[store.ObjectInfo]:
    """List unfinished files of writers in some folders, which stores do not list."""
    if location.scheme != "file":
        return
    for start in folders:
        if has_link(location.uri, start):
            continue
        for folder, names in _folders(f"{location.uri}/{start}"):
            for path in (Path(folder, name) for name in names if is_staged(name)):
                with store.DiskErrors(path.name), contextlib.suppress(FileNotFoundError):
                    status = path.lstat()
                    relative = str(path).removeprefix(f"{location.uri}/")
                    yield store.ObjectInfo(relative, status.st_size, status.st_mtime_ns)


def remove_empty_folders(location: store.StorePlace) -> None:
    """Remove the folders at and below a path on local disk that contain only folders."""
    if location.scheme == "file":
        for folder, _ in _folders(location.uri):
            _remove_if_empty(folder)


def _folders(root: str) -> Iterator[tuple[str, list[str]]]:
    """Yield folders bottom-up, each with its entries that are not folders."""
    for folder, below, files in os.walk(root, topdown=False):
        links = [name for name in below if Path(folder, name).is_symlink()]
        yield folder, [*links, *files]


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        Path(folder).rmdir()
