"""Cleanup on object stores, and of tables with versions in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import VersionNotFoundError
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.s3_server import S3Server, s3_server
from tests.unit.commit.dynamodb_table import items, new_table, options_for

READ = """
ds = lance.dataset(uri, storage_options=options)
result = [[v["version"] for v in ds.versions()], ds.to_table()["a"].to_pylist()]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


def overwritten(uri: str, options: dict[str, str], count: int = 4) -> None:
    for number in range(count):
        rows = pa.table({"a": [number]})
        lance.write_dataset(rows, uri, mode="overwrite", storage_options=options)


def files(uri: str, options: dict[str, str]) -> list[str]:
    return sorted(info.path for info in Location.parse(uri, options).store.list())


def test_old_versions_go_from_a_bucket(official: Official, server: S3Server) -> None:
    uri, options = f"s3://{server.new_bucket()}/t.lance", server.storage_options
    overwritten(uri, options)
    stats = lance.dataset(uri, storage_options=options).cleanup_old_versions(
        retain_versions=1, delete_rate_limit=1000
    )
    assert (stats.old_versions, stats.data_files_removed, stats.failed_deletes) == (3, 3, 0)
    kinds = [path.partition("/")[0] for path in files(uri, options)]
    assert sorted(kinds) == ["_transactions", "_versions", "data"]
    assert official.run(uri, READ, options=options) == [[4], [3]]


def test_entries_of_removed_versions_keep_their_numbers_taken(
    official: Official, server: S3Server
) -> None:
    table, options = new_table(server), options_for(server)
    uri = f"s3+ddb://{server.new_bucket()}/t.lance?ddbTableName={table}"
    overwritten(uri, options)
    lance.dataset(uri, storage_options=options).cleanup_old_versions(retain_versions=2)
    assert len(items(server, table)) == 4
    with pytest.raises(VersionNotFoundError):
        lance.dataset(uri, version=1, storage_options=options)
    assert official.run(uri, READ, options=options) == [[3, 4], [3]]
    lance.write_dataset(pa.table({"a": [9]}), uri, mode="append", storage_options=options)
    assert official.run(uri, READ, options=options) == [[3, 4, 5], [3, 9]]
