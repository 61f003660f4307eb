"""Store on an obstore client."""

from __future__ import annotations

import builtins
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, NotSupportedError, PreconditionError
from obstore.store import ObjectStore as Client

from lancelake.errors import AlreadyExistsError, ObjectNotFoundError, RequestConflictError
from lancelake.storage.store import (
    ClientErrors,
    ObjectChunks,
    ObjectInfo,
    copy_across,
    ends_early,
    ensure_plain,
    ensure_range,
    ensure_whole,
    status_in,
)
from lancelake.threads import NativeThreads

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta, UpdateVersion  # for type checkers only

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PAGE = 1000
_RANGE_NOT_SATISFIABLE = 416

_threads = NativeThreads("the object store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Capabilities that differ between stores."""

    lists_in_order: bool = True
    reads_suffixes: bool = True


class ObstoreStore:
    """Objects below a prefix of a bucket; calls are not retried."""

    __slots__ = ("_abilities", "_client", "_start")

    def __init__(self, client: Client, *, prefix: str, abilities: Abilities) -> None:
        """Create a store of the keys of `client` that start with `prefix` and a slash."""
        self._client = client
        self._start = f"{prefix}/" if prefix else ""
        self._abilities = abilities

    def get(self, path: str) -> bytes:
        """Read a whole object."""
        with ClientErrors(path):
            return obstore.get(self._client, self._key(path)).bytes().to_bytes()

    def get_range(self, path: str, *, start: int, length: int) -> bytes:
        """Read exactly `length` bytes."""
        ensure_range(path, start, length)
        key = self._key(path)
        if length == 0:
            return b""
        with ClientErrors(path):
            try:
                data = obstore.get_range(self._client, key, start=start, length=length)
            except BaseError as error:
                if _is_beyond_end(error):
                    raise ends_early(path, start, length) from error
                raise
        return ensure_whole(data.to_bytes(), path, start, length)

    def get_suffix(self, path: str, *, length: int) -> tuple[bytes, int]:
        """Read the last `length` bytes, and the object's size."""
        ensure_range(path, 0, length)
        key = self._key(path)
        if length == 0 or not self._abilities.reads_suffixes:
            return self._suffix_by_size(path, length)
        with ClientErrors(path):
            try:
                result = obstore.get(self._client, key, options={"range": {"suffix": length}})
                return result.bytes().to_bytes(), result.meta["size"]
            except BaseError as error:
                # An empty object has no last bytes.
                if not _is_beyond_end(error):
                    raise
        return self._suffix_by_size(path, length)

    def head(self, path: str) -> ObjectInfo:
        """Describe an object."""
        with ClientErrors(path):
            return self._info(obstore.head(self._client, self._key(path)))

    def exists(self, path: str) -> bool:
        """Whether an object exists at this path."""
        try:
            self.head(path)
        except ObjectNotFoundError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Describe every object below a folder."""
        key = self._folder_key(prefix)
        with ClientErrors(prefix):
            for page in obstore.list(self._client, key, chunk_size=_PAGE):
                yield from map(self._info, page)

    def list_names(self, directory: str) -> builtins.list[str]:
        """Names of the objects directly in a folder."""
        return [_name(info["path"]) for info in self._folder(directory)["objects"]]

    def list_dirs(self, directory: str) -> builtins.list[str]:
        """Names of the folders directly in a folder."""
        return [_name(key) for key in self._folder(directory)["common_prefixes"]]

    def smallest_names(self, directory: str, *, limit: int) -> builtins.list[str] | None:
        """Return the first names of a folder in ascending order, if the store lists in order."""
        if not self._abilities.lists_in_order:
            return None
        cut = len(directory) + 1 if directory else 0
        paths = (info.path[cut:] for info in self.list(directory))
        return builtins.list(itertools.islice((path for path in paths if "/" not in path), limit))

    def put(
        self,
        path: str,
        data: bytes,
        *,
        durable: bool = True,  # noqa: ARG002  # what such a store takes is durable
    ) -> None:
        """Write an object, replacing any other."""
        with ClientErrors(path):
            obstore.put(self._client, self._key(path), data)

    def put_stream(self, path: str, chunks: Iterable[bytes]) -> None:
        """Write an object from a stream, replacing any other."""
        with ClientErrors(path):
            writer = obstore.open_writer(self._client, self._key(path))
            for chunk in chunks:
                writer.write(chunk)
            # Nothing is published until the writer is closed.
            writer.close()

    def create(self, path: str, data: bytes) -> None:
        """Write an object if the path is free."""
        key = self._key(path)
        try:
            with ClientErrors(path):
                obstore.put(self._client, key, data, mode="create")
        except RequestConflictError as error:
            if self.exists(path):
                problem = f"an object already exists at {path!r}"
                raise AlreadyExistsError(problem, path=path) from error
            raise

    def swap(self, path: str, data: bytes, *, expected: bytes) -> bool:
        """Replace an object if its content is `expected`, and return whether it was replaced."""
        key = self._key(path)
        with ClientErrors(path):
            result = obstore.get(self._client, key)
            if bytes(result.bytes()) != expected:
                return False
            try:
                obstore.put(self._client, key, data, mode=_seen(result.meta))
            except PreconditionError:
                return False
            except NotSupportedError:
                obstore.put(self._client, key, data)
        return True

    def copy(self, source: str, target: str) -> None:
        """Copy within the store, replacing the target."""
        source_key, target_key = self._key(source), self._key(target)
        with ClientErrors(source):
            try:
                obstore.copy(self._client, source_key, target_key)
            except BaseError as error:
                # S3 copies at most 5 GB in one request.
                if "maximum allowable size" not in str(error):
                    raise
                copy_across(ObjectChunks(store=self, path=source), self, target)

    def delete(self, path: str) -> None:
        """Remove an object if it exists."""
        key = self._key(path)
        with ClientErrors(path):
            self._delete_key(key)

    def delete_many(self, paths: Iterable[str]) -> None:
        """Remove objects that exist."""
        keys = map(self._key, paths)
        while batch := builtins.list(itertools.islice(keys, _PAGE)):
            with ClientErrors(batch[0]):
                try:
                    obstore.delete(self._client, batch)
                except FileNotFoundError:
                    # Some stores stop at the first absent object.
                    for key in batch:
                        self._delete_key(key)

    def _delete_key(self, key: str) -> None:
        try:
            obstore.delete(self._client, key)
        except FileNotFoundError:
            return

    def _suffix_by_size(self, path: str, length: int) -> tuple[bytes, int]:
        size = self.head(path).size_bytes
        length = min(length, size)
        return self.get_range(path, start=size - length, length=length), size

    def _folder(self, directory: str) -> ListResult[Sequence[ObjectMeta]]:
        key = self._folder_key(directory)
        with ClientErrors(directory):
            return obstore.list_with_delimiter(self._client, key)

    def _key(self, path: str) -> str:
        ensure_plain(path)
        _threads.ensure_alive()
        return self._start + path

    def _folder_key(self, directory: str) -> str:
        if directory:
            return self._key(directory)
        _threads.ensure_alive()
        return self._start.rstrip("/")

    def _info(self, meta: ObjectMeta) -> ObjectInfo:
        return ObjectInfo(
            path=meta["path"][len(self._start) :],
            size_bytes=meta["size"],
            modified_ns=(meta["last_modified"] - _EPOCH) // _MICROSECOND * 1000,
            e_tag=meta["e_tag"],
        )


def _is_beyond_end(error: BaseError) -> bool:
    text = str(error)
    return (
        status_in(text) == _RANGE_NOT_SATISFIABLE or "StartTooLarge" in text or "NotPartial" in text
    )


def _seen(meta: ObjectMeta) -> UpdateVersion:
    """Identify the object to replace, by the ETag or the version that the store supports."""
    seen: UpdateVersion = {}
    if meta["e_tag"] is not None:
        seen["e_tag"] = meta["e_tag"]
    if meta["version"] is not None:
        seen["version"] = meta["version"]
    return seen


def _name(key: str) -> str:
    return key.rpartition("/")[2]
