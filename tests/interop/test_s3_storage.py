"""Store conformance on S3, and reads of tables that official Lance wrote there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

from lancelake.errors import InvalidRequestError, StorageError
from lancelake.storage.location import Location
from lancelake.storage.store import ObjectStore
from tests.conformance.store_suite import Law, each_store_law
from tests.support.official import Official
from tests.support.s3_server import S3Server, s3_server

WRITE = """
for each in uris:
    lance.write_dataset(pa.table({"a": [1]}), each, storage_options=options)
"""
WRITE_BRANCH = """
lance.write_dataset(pa.table({"a": [1]}), uri, storage_options=options).create_branch("feature/x")
"""
LIST_BRANCHES = """
result = sorted(lance.dataset(uri, storage_options=options).branches.list())
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


@each_store_law
def test_s3_store(law: Law, s3: S3Server, bucket: str) -> None:
    root = f"s3://{bucket}/some/ta ble%2525"
    law(Location.parse(root, s3.storage_options).store)


def test_official_branch_is_found_on_s3(official: Official, s3: S3Server, bucket: str) -> None:
    location = Location.parse(f"s3://{bucket}/t.lance", s3.storage_options)
    official.run(location.uri, WRITE_BRANCH, options=location.storage_options)
    assert_has_branch(location.store)


def test_official_branch_is_found_on_disk(official: Official, tmp_path: Path) -> None:
    location = Location.parse(tmp_path / "t.lance")
    official.run(location.uri, WRITE_BRANCH, options={})
    assert_has_branch(location.store)


def test_our_branch_is_found_by_official_on_s3(
    official: Official, s3: S3Server, bucket: str
) -> None:
    location = Location.parse(f"s3://{bucket}/t.lance", s3.storage_options)
    official.run(location.uri, WRITE_BRANCH, options=location.storage_options)
    store = location.store
    store.put("_refs/branches/other%2Fy.json", store.get("_refs/branches/feature%2Fx.json"))
    found = official.run(location.uri, LIST_BRANCHES, options=location.storage_options)
    assert found == ["feature/x", "other/y"]


def test_s3_uris_mean_the_same_keys_as_for_the_newest_release(
    official_14: Official, s3: S3Server, bucket: str
) -> None:
    keys = ("a b", "p%20q", "h#x", "q?x", "ü", "star*", "per%", "x/../y", "slash/", "a+b", "%2e/z")
    uris = [f"s3://{bucket}/{key}" for key in keys]
    official_14.run(bucket, WRITE, uris=uris, options=s3.storage_options)
    assert without_table(uris, s3.storage_options) == []


def test_local_uris_mean_the_same_paths_as_for_the_newest_release(
    official_14: Official, tmp_path: Path
) -> None:
    uris = [
        *(f"{tmp_path}/plain/{name}" for name in ("a b", "p%20q", "h#x", "q?x", "ü", "x/../y")),
        *(f"file://{tmp_path}/file/{name}" for name in ("a b", "p%20q", "h#x", "q?x", "per%")),
        f"file-object-store://{tmp_path}/fos/p%20q",
        f"file://localhost{tmp_path}/host",
        f"file:{tmp_path}/short",
        f"{tmp_path}//double",
        f"{tmp_path}/slash/",
    ]
    official_14.run(tmp_path, WRITE, uris=uris, options={})
    assert without_table(uris, {}) == []


@pytest.mark.parametrize("name", ["plain.lance", "a b.lance", "p%20q.lance", "h#1x?.lance"])
def test_the_codec_opens_the_uri_of_a_child(name: str, s3: S3Server, bucket: str) -> None:
    root = Location.parse(f"s3://{bucket}/ro%2520ot", s3.storage_options)
    child = root.child(f"data/{name}")
    table = pa.table({"a": [1, 2]})
    with LanceFileWriter(child.uri, table.schema, storage_options=child.storage_options) as writer:
        writer.write_batch(table)
    assert root.store.list_names("data") == [name]
    assert LanceFileReader(child.uri, storage_options=child.storage_options).num_rows() == 2


@pytest.mark.parametrize(
    "spelling",
    [
        lambda options: {key.upper(): value for key, value in options.items()},
        lambda options: {key.removeprefix("aws_"): value for key, value in options.items()},
        lambda options: {**options, "region": "us-east-1", "endpoint_url": options["aws_endpoint"]},
        lambda options: {**options, "timeout": "20s", "connect_timeout": "5s", "user_agent": "me"},
        lambda options: {**options, "client_max_retries": "1", "client_retry_timeout": "10"},
    ],
    ids=["upper case", "no prefix", "two aliases", "client keys", "retry keys"],
)
def test_option_spelling_is_understood(spelling, s3: S3Server, bucket: str) -> None:
    options = spelling(s3.storage_options)
    store = Location.parse(f"s3://{bucket}/t", options).store
    store.put("a", b"1")
    assert s3.keys(bucket) == ["t/a"]


def test_unknown_options_are_refused(s3: S3Server, bucket: str) -> None:
    with pytest.raises(InvalidRequestError, match="aws_frobnicate"):
        Location.parse(f"s3://{bucket}/t", {**s3.storage_options, "aws_frobnicate": "1"})


def test_environment_is_read_at_every_open(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = Location.parse(f"s3://{bucket}/t")
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:1")
    assert location.store
    for key, value in s3.storage_options.items():
        monkeypatch.setenv(key.upper() if key.startswith("aws_") else f"AWS_{key.upper()}", value)
    store = location.store
    store.put("a", b"1")
    assert store.get("a") == b"1"


def test_options_win_over_the_environment(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    store = Location.parse(f"s3://{bucket}/t", s3.storage_options).store
    store.put("a", b"1")
    assert s3.keys(bucket) == ["t/a"]


def test_missing_bucket_is_not_an_absent_object(s3: S3Server) -> None:
    store = Location.parse("s3://no-such-bucket/t", s3.storage_options).store
    with pytest.raises(StorageError, match="bucket"):
        store.get("a")
    with pytest.raises(StorageError, match="bucket"):
        store.list_names("_versions")


def without_table(uris: list[str], options: dict[str, str]) -> list[str]:
    stores = {uri: Location.parse(uri, options).store for uri in uris}
    return [uri for uri, store in stores.items() if not store.list_names("_versions")]


def assert_has_branch(store: ObjectStore) -> None:
    assert store.list_names("_refs/branches") == ["feature%2Fx.json"]
    assert "parentVersion" in json.loads(store.get("_refs/branches/feature%2Fx.json"))
    assert store.list_dirs("tree/feature") == ["x"]
