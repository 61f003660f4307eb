"""Commits of ours and of official Lance through the same DynamoDB table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lancelake.commit.candidate import CommitResult
from lancelake.commit.external_store import ExternalHandler, PublishedEntry
from lancelake.commit.loop import commit
from lancelake.commit.snapshot import VersionLine, open_line
from lancelake.storage.location import Location
from tests.support.official import Official
from tests.support.s3_server import S3Server, s3_server
from tests.support.table_builder import log, means, request, set_config
from tests.unit.commit.dynamodb_table import items, new_table, options_for

CREATE = """
lance.write_dataset(pa.table({"a": [1, 2]}), uri, storage_options=options)
"""
APPEND = """
more = pa.table({"a": [3]})
result = lance.write_dataset(more, uri, mode="append", storage_options=options).version
"""
READ = """
ds = lance.dataset(uri, storage_options=options)
result = [ds.version, ds.count_rows(), sorted(ds.config())]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
def table(server: S3Server) -> str:
    return new_table(server)


@pytest.fixture
def uri(server: S3Server, table: str) -> str:
    return f"s3+ddb://{server.new_bucket()}/db/t.lance?ddbTableName={table}"


def _line(server: S3Server, uri: str) -> VersionLine:
    return open_line(Location.parse(uri, options_for(server)))


def _set(line: VersionLine, key: str, *, unique: int, read_version: int) -> CommitResult:
    asked = request(set_config(key, "set"), unique=unique, read_version=read_version)
    return commit(line, asked, means(line.store, seed=unique))


def test_commits_of_both_follow_each_other(
    official: Official, server: S3Server, table: str, uri: str
) -> None:
    options = options_for(server)
    official.run(uri, CREATE, options=options)
    line = _line(server, uri)
    assert _set(line, "one", unique=1, read_version=1).version == 2
    assert official.run(uri, APPEND, options=options) == 3
    assert _set(line, "two", unique=2, read_version=1).version == 4
    assert official.run(uri, READ, options=options) == [4, 3, ["one", "two"]]
    assert [landed.snapshot.version for landed in log(line)] == [1, 2, 3, 4]
    assert [int(item["version"]) for item in items(server, table)] == [1, 2, 3, 4]
    assert all(item["path"].endswith(".manifest") for item in items(server, table))


def test_official_lance_finishes_a_version_that_we_only_recorded(
    official: Official, server: S3Server, table: str, uri: str
) -> None:
    class Breaking:
        """Dies right after the version was recorded."""

        def __init__(self, handler: ExternalHandler) -> None:
            self._external = handler.external
            self.get, self.get_latest = self._external.get, self._external.get_latest
            self.put_if_not_exists = self._external.put_if_not_exists

        def put_final(self, entry: PublishedEntry) -> None:
            raise KeyboardInterrupt

    options = options_for(server)
    official.run(uri, CREATE, options=options)
    line = _line(server, uri)
    assert isinstance(line.handler, ExternalHandler)
    breaking = replace(line.handler, external=Breaking(line.handler))
    with pytest.raises(KeyboardInterrupt):
        _set(replace(line, handler=breaking), "one", unique=1, read_version=1)
    assert not items(server, table)[1]["path"].endswith(".manifest")
    assert official.run(uri, READ, options=options) == [2, 2, ["one"]]
    assert items(server, table)[1]["path"].endswith(".manifest")
