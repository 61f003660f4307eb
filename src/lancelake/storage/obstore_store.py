"""Stores in the cloud, through obstore."""

from __future__ import annotations

import builtins
import configparser
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, NotSupportedError, PreconditionError
from obstore.store import AzureStore, GCSStore, S3Store
from obstore.store import ObjectStore as Client

from lancelake import errors
from lancelake.caches import CacheKind, Caches
from lancelake.interrupts import pass_on
from lancelake.storage.options import AZURE, GCS, S3, is_true, settings
from lancelake.storage.store import (
    ClientErrors,
    ObjectChunks,
    ObjectInfo,
    StorePlace,
    copy_across,
    ends_early,
    ensure_plain,
    ensure_range,
    ensure_whole,
    shown,
    status_in,
    without_secrets,
)
from lancelake.threads import NativeThreads

_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
# Options that choose how requests are signed.
_SIGNERS = (
    "aws_access_key_id",
    "aws_skip_signature",
    "aws_web_identity_token_file",
    "aws_container_credentials_relative_uri",
    "aws_container_credentials_full_uri",
)
_REGIONS = ("aws_region", "aws_default_region")


def profile_settings(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the key and region of the profile, unless options or environment set them.

    Only keys in the profile's files are used; profiles that need a login are ignored.
    """
    said = {*given, *(name.lower() for name in environment)}
    needs_key = not said.intersection(_SIGNERS)
    needs_region = not said.intersection(_REGIONS)
    if not needs_key and not needs_region:
        return {}
    profile = _profile(environment)
    credentials: dict[str, str] = {}
    if needs_key and _KEYS[0] in profile and _KEYS[1] in profile:
        credentials.update({key: profile[key] for key in _KEYS if key in profile})
    if needs_region and "region" in profile:
        credentials["aws_region"] = profile["region"]
    return credentials


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    name = environment.get("AWS_PROFILE", "default")
    folder = Path(environment.get("HOME", "/")) / ".aws"
    config = environment.get("AWS_CONFIG_FILE", folder / "config")
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE", folder / "credentials")
    section = name if name == "default" else f"profile {name}"
    return {**_section(Path(config), section), **_section(Path(credentials), name)}


def _section(path: Path, name: str) -> dict[str, str]:
    parser = configparser.ConfigParser(interpolation=None, default_section="", strict=False)
    try:
        parser.read_string(path.read_text("utf-8"))
    except OSError as error:
        pass_on(error)
        # Most machines have no such file, and some do not allow reading it.
        return {}
    except (configparser.Error, UnicodeDecodeError) as error:
        raise errors.InvalidRequestError(
            f"{path} is not an AWS settings file", path=str(path)
        ) from error
    return dict(parser[name]) if parser.has_section(name) else {}


_ENVIRONMENT = ("AWS_", "AZURE_", "GOOGLE_", "SERVICE_ACCOUNT")
_EXPRESS_BUCKET = "--x-s3"
_URL_OPTIONS = ("endpoint", "endpoint_url_s3", "endpoint_url_sts", "base_url")
_URL = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d{1,5})?(?:/\S*)?")
_FABRIC = ".fabric.microsoft.com"

Pairs = tuple[tuple[str, str], ...]


_Client = tuple[str, str, Pairs, Pairs]
_CLIENTS: CacheKind[_Client, Client] = CacheKind(
    name="clients", most_bytes=4 << 20, weight=lambda _: 64 << 10, most_values=64
)


def cloud_store(location: StorePlace, caches: Caches) -> ObstoreStore:
    """Return the store at a cloud location; clients and their connections are shared.

    Options override the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), which overrides a profile.
    """
    # The client reads the environment itself; after a change another one is needed.
    key = location.scheme, location.authority, _settings(location), _environment()
    client = caches[_CLIENTS].get(key, lambda: _open_client(*key[:3]))
    return ObstoreStore(client, prefix=location.key, abilities=abilities(location))


def abilities(location: StorePlace) -> Abilities:
    """Return the capabilities of the store at a location."""
    match location.scheme:
        case "s3" | "s3+ddb":
            options = settings(location.storage_options, S3)
            return Abilities(lists_in_order=not _is_express(location.authority, options))
        case "az" | "abfss":
            return Abilities(reads_suffixes=False)
        case _:
            return Abilities()


def _settings(location: StorePlace) -> Pairs:
    options = location.storage_options
    match location.scheme:
        case "s3" | "s3+ddb":
            config = settings(options, S3)
            config = {**profile_settings(config, os.environ), **config}
        case "gs":
            config = settings(options, GCS)
        case _:
            config = settings(options, AZURE)
    return tuple(config.items())


def _open_client(scheme: str, authority: str, pairs: Pairs) -> Client:
    config = dict(pairs)
    _ensure_urls(config)
    try:
        match scheme:
            case "s3" | "s3+ddb":
                return _s3(authority, config)
            case "gs":
                return _gcs(authority, config)
            case "az" | "abfss":
                return _azure(authority, config)
            case _:
                raise errors.InternalError(f"no client for the scheme {scheme!r}")
    except (BaseError, ValueError) as error:
        raise errors.InvalidRequestError(
            f"{scheme}://{authority} cannot be reached with these options: {shown(str(error))}",
            action="Check the storage options and the environment.",
        ) from without_secrets(error)


def _ensure_urls(config: dict[str, str]) -> None:
    """Raise for an endpoint that is not a URL: the client would panic."""
    for key, value in config.items():
        if key.endswith(_URL_OPTIONS) and _URL.fullmatch(value) is None:
            raise errors.InvalidRequestError(
                f"storage option {key!r} is not a URL: {_masked_url(value)}",
                option=key,
                action="Write it as https://host:port.",
            )


def _masked_url(value: str) -> str:
    """Return a URL without parts that may be secret."""
    return repr(value.partition("?")[0].rpartition("@")[2])


# RetryingStore retries, so the clients do not.
def _s3(bucket: str, config: dict[str, str]) -> S3Store:
    if _is_express(bucket, config):
        config = {**config, "aws_s3_express": "true"}
    return S3Store(bucket, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # its keys are written with a prefix


def _gcs(bucket: str, config: dict[str, str]) -> GCSStore:
    # Supported by Lance, unknown to obstore.
    if (token := os.environ.get("GOOGLE_STORAGE_TOKEN")) is not None:
        config = {"google_bearer_token": token, **config}
    return GCSStore(bucket, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # its keys are written with a prefix


def _azure(authority: str, config: dict[str, str]) -> AzureStore:
    container, _, host = authority.partition("@")
    if host:
        config = {**config, "account_name": host.partition(".")[0]}
        if host.endswith(_FABRIC):
            config["use_fabric_endpoint"] = "true"
    return AzureStore(container, config=config, retry_config={"max_retries": 0})  # type: ignore[arg-type]  # a plain dict of its keys


def _is_express(bucket: str, config: dict[str, str]) -> bool:
    setting = config.get("aws_s3_express", os.environ.get("AWS_S3_EXPRESS"))
    return bucket.endswith(_EXPRESS_BUCKET) or is_true(setting)


def _environment() -> Pairs:
    return tuple(sorted(pair for pair in os.environ.items() if pair[0].startswith(_ENVIRONMENT)))


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
        except errors.ObjectNotFoundError:
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
        except errors.RequestConflictError as error:
            if self.exists(path):
                problem = f"an object already exists at {path!r}"
                raise errors.AlreadyExistsError(problem, path=path) from error
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
