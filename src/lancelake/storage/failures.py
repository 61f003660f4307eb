"""Translation of errors of stores and the operating system."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from types import TracebackType

from obstore import exceptions as obs

from lancelake.errors import (
    AlreadyExistsError,
    InvalidRequestError,
    LanceTableError,
    ObjectNotFoundError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
    UnsupportedError,
)

_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_TRANSIENT_ERRNO = {errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.ESTALE, errno.ETIMEDOUT}
_STATUS = re.compile(r"non-2xx status code: (\d{3})|status: (\d{3})\b")
_TRANSIENT_STATUS = {408, 425, 429, 500, 502, 503, 504}
_DENIED_STATUS = {401, 403}
_CANNOT_STATUS = {405, 501}
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
        if isinstance(error, OSError) and not isinstance(error, LanceTableError):
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
            isinstance(error, LanceTableError)
        ):
            raise from_client(error, self.path) from without_secrets(error)
        # A panic in Rust code is not an Exception, and its class has no public name.
        if error is not None and type(error).__name__ == "PanicException":
            raise InvalidRequestError(
                f"{self.path!r}: the store's client failed: {shown(str(error))}",
                path=self.path,
                action="Check the storage options and the environment, such as the endpoint.",
            ) from None


def without_secrets(error: Exception) -> Exception:
    """Return the same error without query strings of URLs, which may include signatures."""
    return type(error)(_masked(str(error)))


def from_client(error: Exception, path: str) -> LanceTableError:
    """Return the error for a failed obstore call on `path`."""
    text = str(error)
    problem = f"{path!r}: {shown(text)}"
    if _NO_BUCKET.search(text):
        return StorageError(problem, path=path, action="Create the bucket, or check its name.")
    match error:
        case FileNotFoundError():
            return ObjectNotFoundError(f"no object at {path!r}", path=path)
        case obs.AlreadyExistsError() | obs.PreconditionError() | obs.NotModifiedError():
            return AlreadyExistsError(f"an object already exists at {path!r}", path=path)
        case obs.PermissionDeniedError() | obs.UnauthenticatedError() | PermissionError():
            return StorageDeniedError(problem, path=path)
        case obs.NotSupportedError() | NotImplementedError():
            return UnsupportedError(problem, path=path)
        case obs.InvalidPathError() | ValueError():
            return InvalidRequestError(problem, path=path)
        case _:
            return _from_text(text, problem, path)


def from_disk(error: OSError, path: str, *, writes: bool) -> LanceTableError:
    """Return the error for a failed system call on `path`."""
    if isinstance(error, _NO_FILE) and not writes:
        return ObjectNotFoundError(f"no object at {path!r}", path=path)
    problem = f"{path!r}: {error.strerror or error}"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return StorageDeniedError(problem, path=path)
    if error.errno in _TRANSIENT_ERRNO:
        return StorageUnavailableError(problem, path=path)
    return StorageError(problem, path=path)


def status_in(text: str) -> int | None:
    """Return the HTTP status that an obstore message reports, if there was one."""
    match = _STATUS.search(text)
    return int(match[1] or match[2]) if match else None


def _from_text(text: str, problem: str, path: str) -> LanceTableError:
    status = status_in(text)
    if _MACHINE_CREDENTIALS.search(text):
        return StorageDeniedError(
            problem, path=path, action="Set credentials in the storage options or the environment."
        )
    if status in _DENIED_STATUS:
        return StorageDeniedError(problem, path=path)
    if status in _CANNOT_STATUS:
        return UnsupportedError(problem, path=path)
    if "BadScheme" in text:
        return StorageError(
            problem, path=path, action='Set the storage option "allow_http" to "true".'
        )
    if _WRONG_REGION.search(text):
        return StorageError(problem, path=path, action='Set the storage option "region".')
    transient = status is None and _TRANSIENT_KIND.search(text)
    if transient or status in _TRANSIENT_STATUS or _THROTTLED.search(text):
        return StorageUnavailableError(problem, path=path)
    return StorageError(problem, path=path)


def _masked(text: str) -> str:
    return _QUERY.sub(r"\1?***", text)


def shown(text: str) -> str:
    """Return the readable part of an obstore message."""
    summary = _masked(text.split("\n\nDebug source", 1)[0])
    return " ".join(summary.split())[:_LONGEST_TEXT]
