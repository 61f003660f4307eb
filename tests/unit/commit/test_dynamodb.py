from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lancelake.commit.external_store import DynamoDb, PublishedEntry, open_dynamodb
from lancelake.errors import (
    CorruptTableError,
    StorageDeniedError,
    StorageError,
    StorageUnavailableError,
)
from lancelake.format.layout import DETACHED_BIT
from lancelake.storage.location import Location
from tests.support.s3_server import S3Server, s3_server
from tests.unit.commit.dynamodb_table import client, items, new_table, options_for

ENTRY = PublishedEntry(version=2, path="_versions/2.manifest-staged", size_bytes=7, e_tag="tag")


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
def table(server: S3Server) -> str:
    return new_table(server)


@pytest.fixture
def entries(server: S3Server, table: str) -> DynamoDb:
    return _open(server, table)


def _open(server: S3Server, table: str, key: str = "db/t.lance") -> DynamoDb:
    uri = f"s3+ddb://bucket/{key}?ddbTableName={table}"
    return open_dynamodb(Location.parse(uri, options_for(server)))


def test_an_item_has_the_attributes_of_official_lance(
    server: S3Server, table: str, entries: DynamoDb
) -> None:
    assert entries.put_if_not_exists(ENTRY)
    assert items(server, table) == [
        {
            "base_uri": "db/t.lance",
            "version": "2",
            "path": "db/t.lance/_versions/2.manifest-staged",
            "committer": "lancelake",
            "size": "7",
            "e_tag": "tag",
        }
    ]


def test_an_entry_reads_back(entries: DynamoDb) -> None:
    entries.put_if_not_exists(ENTRY)
    assert entries.get(2) == entries.get_latest() == ENTRY


def test_a_version_is_recorded_once(entries: DynamoDb) -> None:
    entries.put_if_not_exists(ENTRY)
    assert not entries.put_if_not_exists(PublishedEntry(version=2, path="other"))
    assert entries.get(2) == ENTRY


def test_a_final_entry_replaces_the_first(entries: DynamoDb) -> None:
    entries.put_if_not_exists(ENTRY)
    final = PublishedEntry(version=2, path="_versions/2.manifest", size_bytes=7)
    entries.put_final(final)
    assert entries.get(2) == final


def test_a_final_entry_needs_a_first(entries: DynamoDb) -> None:
    with pytest.raises(StorageError, match="no entry"):
        entries.put_final(ENTRY)


def test_the_latest_is_the_highest_of_the_main_line_of_this_table(
    server: S3Server, table: str, entries: DynamoDb
) -> None:
    for version in (9, 10, 2, DETACHED_BIT | 1):
        entries.put_if_not_exists(
            PublishedEntry(version=version, path=f"_versions/{version}.manifest")
        )
    _open(server, table, "db/other.lance").put_if_not_exists(PublishedEntry(version=11, path="p"))
    latest = entries.get_latest()
    assert latest is not None and latest.version == 10


def test_what_was_never_recorded_is_absent(entries: DynamoDb) -> None:
    assert (entries.get(1), entries.get_latest()) == (None, None)


def test_an_item_that_points_out_of_the_table_is_corruption(
    server: S3Server, table: str, entries: DynamoDb
) -> None:
    item = {
        "base_uri": {"S": "db/t.lance"},
        "version": {"N": "1"},
        "path": {"S": "else/1.manifest"},
    }
    client(server).put_item(TableName=table, Item=item)
    with pytest.raises(CorruptTableError):
        entries.get(1)


def test_an_item_without_a_path_is_corruption(
    server: S3Server, table: str, entries: DynamoDb
) -> None:
    item = {"base_uri": {"S": "db/t.lance"}, "version": {"N": "1"}}
    client(server).put_item(TableName=table, Item=item)
    with pytest.raises(CorruptTableError):
        entries.get(1)


def test_the_error_of_a_missing_dynamodb_table_names_its_keys(server: S3Server) -> None:
    with pytest.raises(StorageError, match="base_uri"):
        _open(server, "no-such-table").get(1)


def test_an_endpoint_that_is_not_there_is_unavailable(server: S3Server) -> None:
    options = {**options_for(server), "dynamodb_endpoint": "http://127.0.0.1:9"}
    location = Location.parse("s3+ddb://b/t?ddbTableName=x", options)
    with pytest.raises(StorageUnavailableError):
        open_dynamodb(location).get(1)


class _Refusing:
    """A client whose every answer is one error."""

    def __init__(self, code: str, status: int) -> None:
        self._response = {
            "Error": {"Code": code, "Message": "no"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }

    def get_item(self, **_: Any) -> Any:
        from botocore.exceptions import ClientError  # type: ignore[import-untyped]

        raise ClientError(self._response, "GetItem")


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccessDeniedException", 400, StorageDeniedError),
        ("ThrottlingException", 400, StorageUnavailableError),
        ("ProvisionedThroughputExceededException", 400, StorageUnavailableError),
        ("Whatever", 503, StorageUnavailableError),
        ("Whatever", 400, StorageError),
    ],
)
def test_answers_of_the_service_become_our_errors(
    code: str, status: int, expected: type[Exception]
) -> None:
    entries = DynamoDb(client=_Refusing(code, status), table="t", base_uri="b")
    with pytest.raises(expected) as caught:
        entries.get(1)
    assert type(caught.value) is expected
