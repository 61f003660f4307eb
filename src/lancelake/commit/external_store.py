"""Versions published through an external store, and DynamoDB as one.

A version is published in four steps: the manifest is staged under a temporary name; the service
records it for its version, which is the commit; it is copied to its final name; the service
records that name. Any client may do the last two steps.
"""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from lancelake import errors
from lancelake.clock import Ids
from lancelake.commit import handler
from lancelake.extras import optional
from lancelake.format import layout
from lancelake.format.layout import DETACHED_BIT, ManifestName, is_detached
from lancelake.storage.location import Location
from lancelake.storage.obstore_store import profile_settings
from lancelake.storage.options import S3, settings
from lancelake.storage.store import ObjectStore, confined_path

_SUFFIX = ".manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedEntry:
    """Entry of a version; `path` is relative to the line's root."""

    version: int
    path: str
    size_bytes: int | None = None
    e_tag: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether the manifest has its final name."""
        return self.path.endswith(_SUFFIX)


class ExternalManifestStore(Protocol):
    """A service with one entry per version of a line and read-after-write consistency.

    It raises the errors of a store.
    """

    def put_if_not_exists(self, entry: PublishedEntry) -> bool:
        """Record a version; False if it has an entry."""

    def put_final(self, entry: PublishedEntry) -> None:
        """Replace the entry of a version that has one."""

    def get(self, version: int) -> PublishedEntry | None:
        """Return the entry of a version."""

    def get_latest(self) -> PublishedEntry | None:
        """Return the entry of the highest version of the main line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalHandler:
    """Publishes through an external manifest store."""

    store: ObjectStore
    external: ExternalManifestStore
    ids: Ids

    def create(self, version: int, name: str, data: bytes) -> handler.Outcome:
        """Publish a manifest if its version is free."""
        if is_detached(version):
            # An entry of a detached version would be taken for the newest version.
            return handler.ConditionalPut(store=self.store).create(version, name, data)
        staged = f"{layout.manifest(name)}-{self.ids.uuid4()}"
        self.store.put(staged, data)
        entry = PublishedEntry(version=version, path=staged, size_bytes=len(data))
        try:
            is_mine = self.external.put_if_not_exists(entry) or self._is_recorded(entry)
        except errors.StorageError as error:
            return handler.Unknown(error)
        if not is_mine:
            with suppress(errors.LanceTableError):
                self.store.delete(staged)
            return handler.Taken()
        with suppress(errors.LanceTableError):
            self._finish(entry)
        return handler.PublishedVersion()

    def latest(self) -> ManifestName | None:
        """Find the newest version; lines without entries are looked up in the object store."""
        entry = self.external.get_latest()
        return handler.latest_manifest(self.store) if entry is None else self._finish(entry)

    def find(self, version: int) -> ManifestName | None:
        """Find the manifest of a version."""
        entry = None if is_detached(version) else self.external.get(version)
        return handler.manifest_of(self.store, version) if entry is None else self._finish(entry)

    def every(self) -> list[ManifestName]:
        """Find all versions of the main line, oldest first."""
        self.latest()
        return handler.every_manifest(self.store)

    def _is_recorded(self, entry: PublishedEntry) -> bool:
        """Whether an earlier attempt of the same request succeeded and its reply was lost."""
        recorded = self.external.get(entry.version)
        return recorded is not None and recorded.path == entry.path

    def _finish(self, entry: PublishedEntry) -> ManifestName:
        """Copy a recorded manifest to its final name, unless that was done."""
        staged = confined_path(entry.path)
        path = _final_path(staged)
        name = handler.taken_apart(path.rpartition("/")[2])
        if entry.is_final:
            return name
        try:
            self.store.copy(staged, path)
        except errors.ObjectNotFoundError as error:
            if not self.store.exists(path):
                problem = f"the manifest of version {entry.version} is lost"
                raise errors.CorruptTableError(problem, path=staged) from error
            return name
        self.external.put_final(
            PublishedEntry(
                version=entry.version, path=path, size_bytes=entry.size_bytes, e_tag=None
            )
        )
        self.store.delete(staged)
        return name


def _final_path(staged: str) -> str:
    stem, separator, _ = staged.partition(_SUFFIX)
    if not separator:
        raise errors.CorruptTableError(f"{staged!r} is not a manifest path", path=staged)
    return stem + _SUFFIX


COMMITTER = "lancelake"
_TABLE_OPTION = "ddbTableName"
_ENDPOINT_OPTION = "dynamodb_endpoint"
_ENDPOINT_VARIABLE = "DYNAMODB_ENDPOINT"
_CONDITION_FAILED = "ConditionalCheckFailedException"
_DENIED = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "UnrecognizedClientException",
}
_BUSY = {
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
}
_WRONG_TABLE = {"ResourceNotFoundException", "ValidationException"}
_FIRST_SERVER_ERROR = 500

Item = dict[str, dict[str, str]]


def open_dynamodb(location: Location) -> DynamoDb:
    """Return the records of the line at `s3+ddb://bucket/key?ddbTableName=table`."""
    options = location.storage_options
    table = options.get(_TABLE_OPTION)
    if not table:
        raise errors.InvalidRequestError(
            f"{location.uri} names no DynamoDB table: add ?{_TABLE_OPTION}=name", table=location.uri
        )
    lowered = {key.lower(): value for key, value in options.items()}
    endpoint = lowered.get(_ENDPOINT_OPTION) or os.environ.get(_ENDPOINT_VARIABLE)
    given = settings(options, S3)
    config = {**profile_settings(given, os.environ), **given}
    client = _client(
        endpoint,
        config.get("aws_region")
        or config.get("aws_default_region")
        or os.environ.get("AWS_REGION"),
        config.get("aws_access_key_id"),
        config.get("aws_secret_access_key"),
        config.get("aws_session_token"),
    )
    return DynamoDb(client=client, table=table, base_uri=location.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDb:
    """The entries of one line in a DynamoDB table."""

    client: Any  # boto3 makes its classes at run time
    table: str
    base_uri: str

    def put_if_not_exists(self, entry: PublishedEntry) -> bool:
        """Record a version; False if it has an entry."""
        condition = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
        return self._put(entry, condition)

    def put_final(self, entry: PublishedEntry) -> None:
        """Replace the entry of a version that has one."""
        condition = "attribute_exists(base_uri) AND attribute_exists(version)"
        if not self._put(entry, condition):
            raise errors.StorageError(
                f"version {entry.version} has no entry in DynamoDB {self.table!r}"
            )

    def get(self, version: int) -> PublishedEntry | None:
        """Return the entry of a version."""
        with _Errors(self.table):
            reply = self.client.get_item(
                TableName=self.table,
                Key={"base_uri": {"S": self.base_uri}, "version": {"N": str(version)}},
                ConsistentRead=True,
            )
        return self._entry(reply["Item"]) if "Item" in reply else None

    def get_latest(self) -> PublishedEntry | None:
        """Return the entry of the highest version of the main line."""
        with _Errors(self.table):
            reply = self.client.query(
                TableName=self.table,
                KeyConditionExpression="base_uri = :base_uri AND version < :detached",
                ExpressionAttributeValues={
                    ":base_uri": {"S": self.base_uri},
                    ":detached": {"N": str(DETACHED_BIT)},
                },
                ScanIndexForward=False,
                Limit=1,
                ConsistentRead=True,
            )
        return next((self._entry(item) for item in reply.get("Items", ())), None)

    def _put(self, entry: PublishedEntry, condition: str) -> bool:
        item: Item = {
            "base_uri": {"S": self.base_uri},
            "version": {"N": str(entry.version)},
            "path": {"S": f"{self._prefix}{entry.path}"},
            "committer": {"S": COMMITTER},
        }
        if entry.size_bytes is not None:
            item["size"] = {"N": str(entry.size_bytes)}
        if entry.e_tag is not None:
            item["e_tag"] = {"S": entry.e_tag}
        try:
            with _Errors(self.table):
                self.client.put_item(TableName=self.table, Item=item, ConditionExpression=condition)
        except _ConditionFailed:
            return False
        return True

    def _entry(self, item: Item) -> PublishedEntry:
        try:
            path = item["path"]["S"]
            size = item.get("size", {}).get("N")
            entry = PublishedEntry(
                version=int(item["version"]["N"]),
                path=path.removeprefix(self._prefix),
                size_bytes=None if size is None else int(size),
                e_tag=item.get("e_tag", {}).get("S"),
            )
        except (KeyError, ValueError) as error:
            problem = f"DynamoDB {self.table!r} has an invalid entry for {self.base_uri!r}"
            raise errors.CorruptTableError(problem) from error
        if not path.startswith(self._prefix):
            raise errors.CorruptTableError(
                f"DynamoDB {self.table!r} names {path!r}, not in this table"
            )
        return entry

    @property
    def _prefix(self) -> str:
        return f"{self.base_uri}/" if self.base_uri else ""


class _ConditionFailed(Exception):  # noqa: N818  # an answer, not an error
    """The condition of a conditional put was not met."""


@dataclass(frozen=True, slots=True)
class _Errors:
    """Translates boto3's errors within a `with` block."""

    table: str

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, errors.LanceTableError):
            return
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            raise _from_response(response, self.table) from error
        if type(error).__module__.startswith("botocore"):
            raise _from_client(error, self.table) from error


def _from_response(response: dict[str, Any], table: str) -> Exception:
    code = str(response.get("Error", {}).get("Code", ""))
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    problem = f"DynamoDB {table!r}: {code} {response.get('Error', {}).get('Message', '')}".strip()
    if code == _CONDITION_FAILED:
        return _ConditionFailed(problem)
    if code in _DENIED:
        return errors.StorageDeniedError(problem)
    if code in _BUSY or status >= _FIRST_SERVER_ERROR:
        return errors.StorageUnavailableError(problem)
    if code in _WRONG_TABLE:
        action = "Create a table with the keys base_uri (HASH, string) and version (RANGE, number)."
        return errors.StorageError(problem, action=action)
    return errors.StorageError(problem)


def _from_client(error: Exception, table: str) -> errors.LanceTableError:
    problem = f"DynamoDB {table!r}: {error}"
    match type(error).__name__:
        case "NoCredentialsError" | "PartialCredentialsError" | "CredentialRetrievalError":
            return errors.StorageDeniedError(problem)
        case "NoRegionError" | "ParamValidationError" | "InvalidEndpointConfigurationError":
            return errors.InvalidRequestError(problem, action='Set the storage option "region".')
        case _:
            return errors.StorageUnavailableError(problem)


@functools.lru_cache(maxsize=32)
def _client(
    endpoint: str | None, region: str | None, key: str | None, secret: str | None, token: str | None
) -> Any:  # boto3 makes its classes at run time
    boto3 = optional("boto3", extra="dynamodb", purpose="a table at s3+ddb://")
    with _Errors("client"):
        return boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
        )
