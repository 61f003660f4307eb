"""DynamoDB manifest store, compatible with official Lance: key (base_uri, version)."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from lancelake.commit.external_store import PublishedEntry
from lancelake.errors import (
    CorruptTableError,
    InvalidRequestError,
    LanceTableError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
)
from lancelake.extras import optional
from lancelake.format.ids import DETACHED_BIT
from lancelake.storage.aws_profile import profile_settings
from lancelake.storage.location import Location
from lancelake.storage.options import S3, settings

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
        raise InvalidRequestError(
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
            raise StorageError(f"version {entry.version} has no entry in DynamoDB {self.table!r}")

    def get(self, version: int) -> PublishedEntry | None:
        """Return the entry of a version."""
        with _Errors(self.table):
            found = self.client.get_item(
                TableName=self.table,
                Key={"base_uri": {"S": self.base_uri}, "version": {"N": str(version)}},
                ConsistentRead=True,
            )
        return self._entry(found["Item"]) if "Item" in found else None

    def get_latest(self) -> PublishedEntry | None:
        """Return the entry of the highest version of the main line."""
        with _Errors(self.table):
            found = self.client.query(
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
        return next((self._entry(item) for item in found.get("Items", ())), None)

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
            raise CorruptTableError(problem) from error
        if not path.startswith(self._prefix):
            raise CorruptTableError(f"DynamoDB {self.table!r} names {path!r}, not in this table")
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
        if not isinstance(error, Exception) or isinstance(error, LanceTableError):
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
        return StorageDeniedError(problem)
    if code in _BUSY or status >= _FIRST_SERVER_ERROR:
        return StorageUnavailableError(problem)
    if code in _WRONG_TABLE:
        action = "Create a table with the keys base_uri (HASH, string) and version (RANGE, number)."
        return StorageError(problem, action=action)
    return StorageError(problem)


def _from_client(error: Exception, table: str) -> LanceTableError:
    problem = f"DynamoDB {table!r}: {error}"
    match type(error).__name__:
        case "NoCredentialsError" | "PartialCredentialsError" | "CredentialRetrievalError":
            return StorageDeniedError(problem)
        case "NoRegionError" | "ParamValidationError" | "InvalidEndpointConfigurationError":
            return InvalidRequestError(problem, action='Set the storage option "region".')
        case _:
            return StorageUnavailableError(problem)


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
