"""Paths from metadata stay below the root."""

from __future__ import annotations

import posixpath
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.storage.store import confined_path, ensure_plain, is_plain


@pytest.mark.parametrize(
    "path",
    [
        "0111-abc.lance",
        "data/0111-abc.lance",
        "_refs/branches/feature%2Fx.json",
        "tree/feature/x/_versions/1.manifest",
        "a..b/..c/d..",
        "100%",
        "with blank/#1",
    ],
)
def test_path_below_the_root_is_kept(path: str) -> None:
    assert confined_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "./a",
        "a//b",
        "a/",
        "a\0b",
        "a\nb",
        "s3://bucket/x",
        "file:///etc/passwd",
        "C:/x",
        "c:x",
        "..\\x",
        "a\\b",
        "%2e%2e/x",
        "%2E%2E%2Fx",
        "a/%2e%2e%2f%2e%2e%2fx",
        "%252e%252e%252fx",
        "%2Fetc/passwd",
        "..%5cx",
        "s3%3A%2F%2Fbucket/x",
        "a%00b",
    ],
)
def test_path_that_could_leave_is_corrupt(path: str) -> None:
    with pytest.raises(CorruptTableError) as caught:
        confined_path(path)
    assert caught.value.facts["path"] == path


def test_path_encoded_without_end_is_corrupt() -> None:
    path = "..%2Fx"
    for _ in range(20):
        path = quote(path)
    with pytest.raises(CorruptTableError):
        confined_path(path)


@given(st.lists(st.sampled_from(["..", ".", "a", "%2e", "%2F", "/", "\\", "%25"])).map("".join))
def test_no_reading_of_a_confined_path_leaves_the_root(path: str) -> None:
    try:
        confined_path(path)
    except CorruptTableError:
        return
    for reading in (path, unquote(path), unquote(unquote(path))):
        joined = posixpath.normpath(posixpath.join("/root", reading.replace("\\", "/")))
        assert joined.startswith("/root/")


def test_unplain_path_is_the_callers_mistake() -> None:
    assert not is_plain("a/../b")
    with pytest.raises(InvalidRequestError):
        ensure_plain("a/../b")


@given(st.text(alphabet="./a\n\x7f", max_size=9))
def test_plain_paths_are_those_that_normalising_leaves_as_they_are(path: str) -> None:
    is_normal = posixpath.normpath(path) == path and path not in {"", ".", ".."}
    leaves = path.startswith(("/", "../"))
    assert is_plain(path) == (is_normal and not leaves and not {"\n", "\x7f"} & set(path))
