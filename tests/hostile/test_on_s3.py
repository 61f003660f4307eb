"""Hostile tables in an object store reach neither local files nor options of their own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import PlaceNotAllowedError, SchemaMismatchError
from lancelake.pylance import Blob, DatasetBasePath, blob_array, blob_field
from lancelake.storage.location import Location
from tests.support.raw_text import strings
from tests.support.s3_server import S3Server, s3_server

ROWS = pa.table({"a": [1, 2]})


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def uri(s3: S3Server) -> str:
    return f"s3://{s3.new_bucket()}/t.lance"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lance.write_dataset(ROWS, str(tmp_path / "source.lance"))
    return tmp_path / "source.lance"


def test_base_on_local_disk_is_reached_only_when_it_is_allowed(
    s3: S3Server, uri: str, source: Path
) -> None:
    options = s3.storage_options
    lance.dataset(str(source)).shallow_clone(uri, 1, storage_options=options)
    with pytest.raises(PlaceNotAllowedError, match="another kind of store"):
        lance.dataset(uri, storage_options=options).to_table()
    allowed = lance.dataset(uri, storage_options=options, confine_to=[source])
    assert allowed.to_table() == ROWS


def test_base_in_another_bucket_is_reached_with_the_same_options(s3: S3Server, uri: str) -> None:
    options = s3.storage_options
    other = f"s3://{s3.new_bucket()}/clone.lance"
    made = lance.write_dataset(ROWS, uri, storage_options=options)
    made.shallow_clone(other, 1, storage_options=options)
    assert lance.dataset(other, storage_options=options).to_table() == ROWS
    with pytest.raises(PlaceNotAllowedError, match="outside of confine_to"):
        lance.dataset(other, storage_options=options, confine_to=[]).to_table()


@pytest.mark.parametrize("place", ["/etc/hostname", "file:///etc/hostname", "s3://b/k?endpoint=x"])
def test_blob_at_a_place_that_is_not_allowed_is_refused(s3: S3Server, uri: str, place: str) -> None:
    schema = pa.schema([blob_field("blob")])
    rows = pa.table([blob_array([Blob(uri=place)])], schema=schema)
    made = lance.write_dataset(
        rows,
        uri,
        storage_options=s3.storage_options,
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    with pytest.raises(PlaceNotAllowedError):
        made.take_blobs("blob", indices=[0])


def test_options_in_a_base_path_are_refused(s3: S3Server, uri: str) -> None:
    base = DatasetBasePath(
        "s3+ddb://b/k?ddbTableName=t&endpoint=http://127.0.0.1:1&allow_http=true", name="evil"
    )
    with pytest.raises(PlaceNotAllowedError, match="query"):
        lance.write_dataset(
            ROWS,
            uri,
            storage_options=s3.storage_options,
            initial_bases=[base],
            target_bases=["evil"],
        )


def test_a_deeply_nested_record_does_not_block_a_cleanup(s3: S3Server, uri: str) -> None:
    options = s3.storage_options
    for mode in ("create", "overwrite"):
        made = lance.write_dataset(ROWS, uri, mode=mode, storage_options=options)
    Location.parse(uri, options).store.put("_cleanup/x.json", b"[" * 200_000)
    assert made.cleanup_old_versions(timedelta(0)).old_versions == 1
    assert lance.dataset(uri, storage_options=options).to_table() == ROWS


def test_a_string_that_is_not_utf8_is_refused(s3: S3Server, uri: str) -> None:
    rows = pa.table({"s": strings(b"ok", b"\xff")})
    with pytest.raises(SchemaMismatchError, match="not UTF-8"):
        lance.write_dataset(rows, uri, storage_options=s3.storage_options)
    assert not list(Location.parse(uri, s3.storage_options).store.list(""))
