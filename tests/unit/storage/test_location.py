"""Parsing of locations."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import InvalidRequestError
from lancelake.storage.location import Location

names = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/"), min_size=1
).filter(lambda name: name not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=4).map("/".join)


def uri(text: str) -> str:
    return Location.parse(text).uri


def test_absolute_path_is_kept() -> None:
    assert uri("/data/t.lance") == "/data/t.lance"


@pytest.mark.parametrize("name", ["a b", "p%20q", "h#x", "q?x", "ü日", "100%"])
def test_plain_path_is_literal(name: str) -> None:
    assert uri(f"/data/{name}") == f"/data/{name}"


def test_relative_path_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert uri("some/../t.lance") == f"{tmp_path}/t.lance"


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert uri("~/t.lance") == "/home/someone/t.lance"


def test_path_object_is_taken(tmp_path: Path) -> None:
    assert Location.parse(tmp_path / "t").uri == f"{tmp_path}/t"


@pytest.mark.parametrize("text", ["/a/b/", "//a/b", "/a//b", "/a/./b"])
def test_local_path_has_one_spelling(text: str) -> None:
    assert uri(text) == "/a/b"


def test_file_uri_is_decoded() -> None:
    assert uri("file:///a/p%20q/%C3%BC") == "/a/p q/ü"


@pytest.mark.parametrize(
    "text", ["file:///a/b", "file://localhost/a/b", "file:/a/b", "file-object-store:///a/b"]
)
def test_file_uri_is_a_local_path(text: str) -> None:
    location = Location.parse(text)
    assert (location.uri, location.scheme) == ("/a/b", "file")


@pytest.mark.parametrize("text", ["file://host/a", "file://a", ""])
def test_file_uri_elsewhere_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        uri(text)


@pytest.mark.parametrize(
    ("text", "scheme", "authority", "key"),
    [
        ("s3://b/k/t", "s3", "b", "k/t"),
        ("s3://b", "s3", "b", ""),
        ("s3://b/", "s3", "b", ""),
        ("S3://b/k/", "s3", "b", "k"),
        ("s3a://b/k", "s3", "b", "k"),
        ("gs://b/k", "gs", "b", "k"),
        ("az://c/k", "az", "c", "k"),
        ("abfss://c@a.dfs.core.windows.net/k", "abfss", "c@a.dfs.core.windows.net", "k"),
        ("s3://b/a b/p%20q/ü", "s3", "b", "a b/p q/ü"),
        ("s3://b/x/../y/./z", "s3", "b", "y/z"),
        ("s3://b/k?query#fragment", "s3", "b", "k"),
        ("memory://name/k", "memory", "name", "k"),
        ("memory://", "memory", "", ""),
        ("memory:///k", "memory", "", "k"),
    ],
)
def test_uri_is_taken_apart(text: str, scheme: str, authority: str, key: str) -> None:
    location = Location.parse(text)
    assert (location.scheme, location.authority, location.key) == (scheme, authority, key)


def test_remote_uri_is_encoded_where_it_must_be() -> None:
    assert uri("s3://b/a b/100%/ü") == "s3://b/a%20b/100%25/%C3%BC"


@pytest.mark.parametrize("text", ["s3:///k", "s3://b/a//b", "s3://b/../k", "s3://b/%FF", "s3://"])
def test_malformed_uri_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        uri(text)


def test_a_path_with_a_colon_after_a_slash_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert uri("./a:b") == f"{tmp_path}/a:b"
    assert uri("2024-05-06T10:00:00") == f"{tmp_path}/2024-05-06T10:00:00"
    assert uri("/data/s3:/x") == "/data/s3:/x"


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hidden@b/t",
        "s3://AKIA:hid/den+hidden@b/t",
        "https://me:hidden@host/t",
        "https://host/t?sig=hidden",
        "az:///t?sig=hidden",
        "s3://b/../t?hidden",
        "file://host/a?hidden",
    ],
)
def test_credentials_in_a_uri_are_not_quoted(text: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        uri(text)
    assert "hid" not in repr(caught.value) + str(caught.value)


def test_dynamodb_table_becomes_an_option() -> None:
    location = Location.parse("s3+ddb://b/k?ddbTableName=commits", {"region": "x"})
    assert location.uri == "s3+ddb://b/k"
    assert location.storage_options == {"ddbTableName": "commits", "region": "x"}


def test_option_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="client_max_retries"):
        Location.parse("s3://b/k", {"client_max_retries": 3})  # type: ignore[dict-item]  # on purpose


def test_options_compare_without_order() -> None:
    one = Location.parse("s3://b/k", {"region": "1", "endpoint": "2"})
    two = Location.parse("s3://b/k", {"endpoint": "2", "region": "1"})
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize("show", [repr, str, lambda location: f"{[location]}"])
def test_secrets_are_not_shown(show) -> None:
    location = Location.parse("s3://b/k", {"aws_secret_access_key": "hush"})
    assert "hush" not in show(location)


def test_pickle_keeps_options() -> None:
    location = Location.parse("s3://b/k", {"aws_secret_access_key": "hush"})
    assert pickle.loads(pickle.dumps(location)) == location


def test_child_of_nothing_is_the_place_itself() -> None:
    location = Location.parse("/a")
    assert location.child("") is location


def test_child_of_the_file_system_root() -> None:
    assert Location.parse("/").child("a").uri == "/a"


@pytest.mark.parametrize("relative", ["../x", "/x", "a//b", "a/"])
def test_child_outside_is_refused(relative: str) -> None:
    with pytest.raises(InvalidRequestError):
        Location.parse("/a").child(relative)


@given(paths)
def test_child_key_is_literal(relative: str) -> None:
    assert Location.parse("s3://b/k").child(relative).key == f"k/{relative}"


@given(paths)
def test_local_child_is_literal(relative: str) -> None:
    assert Location.parse("/k").child(relative).uri == f"/k/{relative}"


@given(paths)
def test_parse_of_a_uri_is_that_uri(relative: str) -> None:
    location = Location.parse("s3://b").child(relative)
    assert Location.parse(location.uri) == location
