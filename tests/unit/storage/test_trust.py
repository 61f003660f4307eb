"""Locations that the content of a table may refer to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lancelake.errors import InvalidRequestError, PlaceNotAllowedError
from lancelake.storage.location import Location
from lancelake.storage.table_files import local_path, place_named_by

OPTIONS = {"region": "x"}
S3 = Location.parse("s3://bucket/t.lance", OPTIONS)
AZURE = Location.parse("abfss://c@mine.dfs.core.windows.net/t.lance")


@pytest.mark.parametrize(
    "text",
    [
        "s3+ddb://b/k?ddbTableName=t",
        "s3+ddb://b/k?endpoint=http://evil&allow_http=true",
        "s3+ddb://b/k?container_credentials_full_uri=http://evil",
        "s3://b/k?endpoint=http://evil",
        "s3://b/k#fragment",
        "file:///x?y",
        "file:/x?y",
        "~/.aws/credentials",
        "~root/x",
    ],
)
@pytest.mark.parametrize("root", ["s3://bucket/t.lance", "/t.lance", "memory://t"])
def test_place_has_no_query_and_no_home(root: str, text: str) -> None:
    with pytest.raises(PlaceNotAllowedError):
        place_named_by(Location.parse(root), text)


@pytest.mark.parametrize("text", ["s3://other/base", "s3+ddb://other/base", "s3a://other/base"])
def test_place_is_reached_with_the_options_of_the_caller_alone(text: str) -> None:
    found = place_named_by(S3, text)
    assert found.storage_options == OPTIONS
    assert found.uri == "s3://other/base"


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "relative", "file:///etc", "memory://m/x", "gs://b/k", "az://c/k"]
)
def test_table_in_a_store_names_only_that_kind_of_store(text: str) -> None:
    with pytest.raises(PlaceNotAllowedError, match="another kind of store"):
        place_named_by(S3, text)


def test_table_in_azure_names_only_its_own_account() -> None:
    assert place_named_by(AZURE, "abfss://d@mine.dfs.core.windows.net/x").authority.startswith("d@")
    assert place_named_by(AZURE, "az://d/x").authority == "d"
    with pytest.raises(PlaceNotAllowedError):
        place_named_by(AZURE, "abfss://c@evil.dfs.core.windows.net/x")


@pytest.mark.parametrize("text", ["/elsewhere/t", "file:///elsewhere/t", "s3://bucket/t"])
def test_table_on_disk_names_any_place(text: str) -> None:
    assert place_named_by(Location.parse("/t.lance"), text).uri == text.removeprefix("file://")


@pytest.mark.parametrize(
    "authority", ["evil:80\\x", "a@b@c", "a b", "localhost:8080\\", "2130706433:80\\", "x%2fy", "ü"]
)
@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "abfss"])
def test_bucket_that_could_choose_a_host_is_refused(scheme: str, authority: str) -> None:
    with pytest.raises(InvalidRequestError):
        Location.parse(f"{scheme}://{authority}/t")


@pytest.mark.parametrize("authority", ["my-bucket.v2_x", "example.com:bucket", "$web", "c@a.host"])
def test_ordinary_bucket_is_taken(authority: str) -> None:
    assert Location.parse(f"az://{authority}/t").authority == authority


@pytest.mark.parametrize(
    ("roots", "text", "is_allowed"),
    [
        ([], "/t.lance/x", True),
        ([], "/elsewhere", False),
        (["/shared"], "/shared", True),
        (["/shared"], "/shared/x", True),
        (["/shared"], "/shared-not", False),
        (["/shared"], "/shared/../etc", False),
        (["/shared"], "s3://bucket/x", False),
        (["s3://bucket/a"], "s3://bucket/a/b", True),
        (["s3://bucket/a"], "s3://bucket/b", False),
        (["s3://bucket/a"], "s3+ddb://bucket/a/b", True),
        (["/"], "/etc", True),
    ],
)
def test_confined_table_names_what_is_below_its_roots(
    roots: list[str], text: str, is_allowed: bool
) -> None:
    table = Location.parse("/t.lance", confine_to=roots)
    if is_allowed:
        assert place_named_by(table, text).confine_to == table.confine_to
    else:
        with pytest.raises(PlaceNotAllowedError, match="outside of confine_to"):
            place_named_by(table, text)


def test_roots_can_allow_a_table_in_a_store_a_local_folder() -> None:
    table = Location.parse("s3://bucket/t", OPTIONS, confine_to=["/shared"])
    assert place_named_by(table, "/shared/base").uri == "/shared/base"


def test_everything_derived_from_a_confined_place_is_confined() -> None:
    table = Location.parse("/t.lance", confine_to=["/shared"])
    assert table.child("tree/b").confine_to == ("/t.lance", "/shared")
    assert table.beside("/u.lance").confine_to == ("/u.lance", "/t.lance", "/shared")


def test_roots_are_a_list() -> None:
    with pytest.raises(InvalidRequestError, match="list"):
        Location.parse("/t.lance", confine_to="/shared")


def test_root_is_compared_without_its_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = Location.parse(tmp_path / "link" / "t", confine_to=[])
    assert place_named_by(table, os.fspath(tmp_path / "real" / "t" / "x"))
    assert local_path(table, "data/x") == f"{tmp_path}/link/t/data/x"


def test_path_for_others_does_not_leave_through_links(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "data").symlink_to("/usr")
    with pytest.raises(PlaceNotAllowedError):
        local_path(Location.parse(tmp_path / "t", confine_to=[]), "data/x")
