"""Port of stores: paths that it takes, what failures mean, files that are created once."""

from __future__ import annotations

import builtins
import errno
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from obstore import exceptions as obs

from lancelake import errors


# A tuple, because listings have thousands of them.
class ObjectInfo(NamedTuple):
    """Metadata of an object."""

    path: str
    size_bytes: int
    modified_ns: int
    e_tag: str | None = None


class StorePlace(Protocol):
    """Where a store is, and with which options it is opened."""

    @property
    def uri(self) -> str:
        """The URI, or an absolute path on local disk."""

    @property
    def scheme(self) -> str:
        """Kind of store."""

    @property
    def authority(self) -> str:
        """Bucket or container, or the name of a memory store."""

    @property
    def key(self) -> str:
        """Path within the bucket, decoded."""

    @property
    def storage_options(self) -> dict[str, str]:
        """Options of the caller."""

    @property
    def confine_to(self) -> tuple[str, ...] | None:
        """The only roots that may be accessed; None means no limit."""


class StoredFile(Protocol):
    """A file in a store."""

    @property
    def uri(self) -> str:
        """URI of the file."""

    @property
    def root(self) -> StorePlace:
        """Where its store is."""

    @property
    def path(self) -> str:
        """Path below the root."""


class ObjectStore(Protocol):
    """Objects at paths below one root.

    Paths are relative to the root, separated by `/`, and taken literally: `%`, `#` and blanks are
    ordinary characters. Every error is one of `ObjectNotFoundError`, `AlreadyExistsError`,
    `StorageDeniedError`, `StorageUnavailableError`, `StorageError`, `UnsupportedError`.
    """

    def get(self, path: str) -> bytes:
        """Read a whole object."""

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes; raise `StorageError` when the object ends earlier.

        Nothing is read or checked when `length` is 0.
        """

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, or all if there are fewer, and the object's size."""

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""

    def exists(self, path: str) -> bool:
        """Whether an object (not a folder) exists at this path."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder, in any order; a missing folder is empty."""

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder, in any order."""

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder, in any order."""

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first `limit` names of `list_names` in ascending order, in few calls.

        None when the store does not list in order.
        """

    def put(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Write an object, replacing any other: readers see the old bytes or the new ones.

        On local disk the object is durable when this returns, unless syncing is disabled.
        """

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Like `put`, with bytes that need not fit into memory.

        `chunks` is iterated again on every attempt.
        """

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free, or raise `AlreadyExistsError`.

        Of several concurrent creates exactly one succeeds. On local disk the object is durable
        when this returns. After `StorageUnavailableError` the object may or may not exist:
        creates are only retried if the store refused them (`create_once` finds out).
        """

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced.

        Of several concurrent swaps that expect the same, one succeeds, unless the store cannot
        compare. After `StorageUnavailableError` the object may or may not be replaced: swaps are
        only retried if the store refused them.
        """

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist. After an error some may be left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChunks:
    """An object as a stream that can be read repeatedly."""

    store: ObjectStore
    path: str
    chunk_bytes: int = 16 * 1024 * 1024

    def __iter__(self) -> Iterator[bytes]:
        size = self.store.head(self.path).size_bytes
        for start in range(0, size, self.chunk_bytes):
            length = min(self.chunk_bytes, size - start)
            yield self.store.get_range(self.path, start=start, length=length)


def copy_across(source: ObjectChunks, target: ObjectStore, path: str) -> None:
    """Copy an object into another store without loading it into memory."""
    target.put_stream(path, source)


def ensure_range(path: str, start: int, length: int) -> None:
    """Raise for a negative start or length."""
    if start < 0 or length < 0:
        raise errors.InvalidRequestError(
            f"bytes {start} to {start + length} of {path!r} are not a valid range", path=path
        )


def ensure_whole(data: bytes, path: str, start: int, length: int) -> bytes:
    """Return the bytes read, or raise when the object ended too early."""
    if len(data) != length:
        raise ends_early(path, start, length)
    return data


def ends_early(path: str, start: int, length: int) -> errors.StorageError:
    """Return the error for an object that ends before the end of a range."""
    return errors.StorageError(
        f"{path!r} ends before byte {start + length}", path=path, start=start, length=length
    )


_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_TRANSIENT_ERRNO = {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_STATUS = re.compile(r"non-2xx status code: (\d{3})|status: (\d{3})\b")
_TRANSIENT_STATUS = {408, 425, 429, *range(500, 600)}
_DENIED_STATUS = {401, 403}
_CANNOT_STATUS = {405, 501}
# S3 refuses one of two requests at the same time. Azure also means that a blob exists, which
# `create` finds out.
_CONFLICT = 409
# The kinds of object_store's HTTP errors that mean the reply did not arrive.
_TRANSIENT_KIND = re.compile(
    r"kind: (?:Connect|Request|Timeout|Interrupted|Decode|Body)\b|TimedOut"
)
_THROTTLED = re.compile(r"SlowDown|Throttl|RequestTimeout|ServerBusy|InternalError")
# Address of the cloud metadata service, used only without other credentials.
_MACHINE_CREDENTIALS = re.compile(r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google\.internal")
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
_WRONG_REGION = re.compile(r"PermanentRedirect|AuthorizationHeaderMalformed")
_QUERY = re.compile(r"(https?://[^\s?\"',)]+)\?[^\s\"',)]+")
_LONGEST_TEXT = 400


@dataclass(frozen=True, slots=True)
class DiskErrors:
    """Translates the operating system's errors within a `with` block."""

    path: str
    writes: bool = False

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and not isinstance(error, errors.LanceTableError):
            raise from_disk(error, self.path, writes=self.writes) from error


@dataclass(frozen=True, slots=True)
class ClientErrors:
    """Translates obstore's errors within a `with` block."""

    path: str

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, (obs.BaseError, OSError, NotImplementedError, ValueError)) and not (
            isinstance(error, errors.LanceTableError)
        ):
            raise from_client(error, self.path) from without_secrets(error)
        # A panic in Rust code is not an Exception, and its class has no public name.
        if error is not None and type(error).__name__ == "PanicException":
            raise errors.InvalidRequestError(
                f"{self.path!r}: the store's client failed: {shown(str(error))}",
                path=self.path,
                action="Check the storage options and the environment, such as the endpoint.",
            ) from None


def without_secrets(error: Exception) -> Exception:
    """Return the same error without query strings of URLs, which may include signatures."""
    return type(error)(_masked(str(error)))


def from_client(error: Exception, path: str) -> errors.LanceTableError:
    """Return the error for a failed obstore call on `path`.

    Of a conditional put it tells what happened: `AlreadyExistsError`, the condition does not hold;
    `RequestConflictError`, nothing was done; `StorageUnavailableError`, the object may or may not
    be written. All other errors: nothing was done, and a retry does not help.
    """
    text = str(error)
    problem = f"{path!r}: {shown(text)}"
    if _NO_BUCKET.search(text):
        return errors.StorageError(
            problem, path=path, action="Create the bucket, or check its name."
        )
    match error:
        case FileNotFoundError():
            return errors.ObjectNotFoundError(f"no object at {path!r}", path=path)
        case obs.AlreadyExistsError() if status_in(text) == _CONFLICT:
            return errors.RequestConflictError(problem, path=path)
        case obs.AlreadyExistsError() | obs.PreconditionError() | obs.NotModifiedError():
            return errors.AlreadyExistsError(f"an object already exists at {path!r}", path=path)
        case obs.PermissionDeniedError() | obs.UnauthenticatedError() | PermissionError():
            return errors.StorageDeniedError(problem, path=path)
        case obs.NotSupportedError() | NotImplementedError():
            return errors.UnsupportedError(problem, path=path)
        case obs.InvalidPathError() | ValueError():
            return errors.InvalidRequestError(problem, path=path)
        case _:
            return _from_text(text, problem, path)


def from_disk(error: OSError, path: str, *, writes: bool) -> errors.LanceTableError:
    """Return the error for a failed system call on `path`."""
    if isinstance(error, _NO_FILE) and not writes:
        return errors.ObjectNotFoundError(f"no object at {path!r}", path=path)
    problem = f"{path!r}: {error.strerror or error}"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return errors.StorageDeniedError(problem, path=path)
    if error.errno in _TRANSIENT_ERRNO:
        return errors.StorageUnavailableError(problem, path=path)
    return errors.StorageError(problem, path=path)


def status_in(text: str) -> int | None:
    """Return the HTTP status that an obstore message reports, if there was one."""
    match = _STATUS.search(text)
    return int(match[1] or match[2]) if match else None


def _from_text(text: str, problem: str, path: str) -> errors.LanceTableError:
    status = status_in(text)
    if _MACHINE_CREDENTIALS.search(text):
        return errors.StorageDeniedError(
            problem, path=path, action="Set credentials in the storage options or the environment."
        )
    if status in _DENIED_STATUS:
        return errors.StorageDeniedError(problem, path=path)
    if status in _CANNOT_STATUS:
        return errors.UnsupportedError(problem, path=path)
    if "BadScheme" in text:
        return errors.StorageError(
            problem, path=path, action='Set the storage option "allow_http" to "true".'
        )
    if _WRONG_REGION.search(text):
        return errors.StorageError(problem, path=path, action='Set the storage option "region".')
    transient = status is None and _TRANSIENT_KIND.search(text)
    if transient or status in _TRANSIENT_STATUS or _THROTTLED.search(text):
        return errors.StorageUnavailableError(problem, path=path)
    return errors.StorageError(problem, path=path)


def _masked(text: str) -> str:
    return _QUERY.sub(r"\1?***", text)


def shown(text: str) -> str:
    """Return the readable part of an obstore message."""
    summary = _masked(text.split("\n\nDebug source", 1)[0])
    return " ".join(summary.split())[:_LONGEST_TEXT]


_ATTEMPTS = 6


def create_once(store: ObjectStore, path: str, data: bytes) -> bool:
    """Write an object if its path is free; return whether the path has these bytes.

    No other writer writes the same bytes. After a lost reply the object is read; it is written
    again while there is none. After `StorageUnavailableError` it may or may not exist.
    """
    for attempt in range(_ATTEMPTS):
        try:
            store.create(path, data)
        except errors.AlreadyExistsError:
            pass
        except errors.StorageUnavailableError:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return True
        try:
            return store.get(path) == data
        except errors.ObjectNotFoundError:
            continue
        except errors.LanceTableError as error:
            msg = f"{path!r} may have been written: it cannot be read: {error}"
            raise errors.StorageUnavailableError(msg, path=path) from error
    msg = f"{path!r} was removed again by another writer in each of {_ATTEMPTS} attempts"
    raise errors.StorageUnavailableError(msg, path=path)


# Without control characters, and neither empty nor `.` nor `..`. Possessive, for speed: every
# call of a store checks its path.
_NAME = r"(?!\.\.?(?:/|\Z))[^/\x00-\x1f\x7f]++"
# The group is not possessive: early releases of Python 3.11 let such groups match too much.
_PLAIN = re.compile(rf"{_NAME}(?:/{_NAME})*")
# Names of writers, which are the same in every encoding.
_ORDINARY = re.compile(r"[0-9A-Za-z_][-.0-9A-Za-z_]*+")
_DRIVE = re.compile(r"[A-Za-z]:")
_MOST_LAYERS = 8


def confined_path(relative: str) -> str:
    """Return a path of a table's metadata, or raise for one that could leave the root."""
    if _ORDINARY.fullmatch(relative):
        return relative
    for reading in _readings(relative):
        if not is_plain(reading.replace("\\", "/")) or _DRIVE.match(reading) or "://" in reading:
            raise errors.CorruptTableError(f"path {relative!r} leaves the table", path=relative)
    if "\\" in relative:
        raise errors.CorruptTableError(f"path {relative!r} has a backslash", path=relative)
    return relative


def is_plain(path: str) -> bool:
    """True for non-empty names joined by `/`, none of them `.` or `..`."""
    return _PLAIN.fullmatch(path) is not None


def ensure_plain(path: str) -> None:
    """Raise for a path that is not plain, which is an error of the caller."""
    if _PLAIN.fullmatch(path) is None:
        raise errors.InvalidRequestError(f"not a relative object path: {path!r}", path=path)


def _readings(path: str) -> list[str]:
    """Return the path as written and after each possible percent-decoding."""
    readings = [path]
    while (decoded := unquote(readings[-1])) != readings[-1]:
        readings.append(decoded)
        if len(readings) > _MOST_LAYERS:
            raise errors.CorruptTableError(f"path {path!r} is percent-encoded too often", path=path)
    return readings


def real_roots(confine_to: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the local folders that a location is confined to, with links resolved."""
    if confine_to is None:
        return None
    return tuple(os.path.realpath(root) for root in confine_to if "://" not in root)


def ensure_below(full: str, roots: tuple[str, ...]) -> None:
    """Raise for a path on local disk outside of some roots, directly or through links."""
    if not is_below(os.path.realpath(full), roots):
        raise errors.PlaceNotAllowedError(f"{full!r} is outside of confine_to", path=full)


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path or URI is one of some roots, or below one."""
    return any(path == root or path.startswith(f"{root.rstrip('/')}/") for root in roots)
