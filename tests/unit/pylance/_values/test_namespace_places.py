"""Names and folders in a directory namespace."""

from __future__ import annotations

import pytest

from lancelake.pylance._namespace import (
    InvalidInput,
    count_below,
    ensure_inside,
    folder_of,
    names_below,
    page_of,
)

IDS = ["a", "b", "b$x", "b$x$y", "bb$z"]


def test_folders_below_a_namespace_are_unique() -> None:
    assert folder_of(["t"], "0123456789") == "t.lance"
    assert folder_of(["s", "t"], "0123456789") == "01234567_s$t"


def test_names_are_those_of_one_level() -> None:
    assert names_below(IDS, []) == {"a", "b"}
    assert names_below(IDS, ["b"]) == {"x"}
    assert count_below(IDS, ["b"]) == 2


def test_a_page_begins_after_its_token() -> None:
    assert page_of({"c", "a", "b"}, None, None).names == ["a", "b", "c"]
    last = page_of({"c", "a", "b"}, "a", 2)
    assert (last.names, last.token) == (["b", "c"], None)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("s3://b/t.lance", "Absolute URIs"),
        ("/t.lance", "Absolute paths"),
        ("a/../../t.lance", "Path traversal"),
    ],
)
def test_a_location_is_below_the_root(location: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        ensure_inside(location)
    ensure_inside("a/t..lance")
