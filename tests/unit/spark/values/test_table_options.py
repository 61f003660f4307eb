"""Options of reads and writes."""

from __future__ import annotations

import pytest

from lancelake.commit.snapshot import AsOf, AtTag, AtVersion, Latest, OnBranch
from lancelake.errors import InvalidRequestError
from lancelake.spark.values.options import (
    READ_OPTIONS,
    location_at,
    options_for,
    parse,
    parse_time,
    reference,
)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, Latest()),
        ({"version": "3"}, AtVersion(3)),
        ({"TAG": "first"}, AtTag("first")),
        ({"branch": "trial"}, OnBranch("trial")),
        ({"branch": "trial", "version": "2"}, OnBranch("trial", 2)),
        ({"timestamp": "1970-01-01 00:00:01Z"}, AsOf(1_000_000)),
    ],
)
def test_a_version_is_chosen(given: dict[str, str], wanted: object) -> None:
    assert reference(parse({"path": "/t", **given}, READ_OPTIONS)) == wanted


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"vresion": "1"}, "Did you mean version"),
        ({"mergeSchema": "true"}, "unknown option mergeSchema"),
        ({"version": "two"}, "must be an integer"),
        ({"version": "2", "tag": "x"}, "cannot be combined"),
        ({"tag": "x", "branch": "y"}, "cannot be combined"),
    ],
)
def test_a_wrong_option_is_explained(given: dict[str, str], match: str) -> None:
    with pytest.raises(InvalidRequestError, match=match):
        reference(parse({"path": "/t", **given}, READ_OPTIONS))


def test_a_missing_path_is_explained() -> None:
    with pytest.raises(InvalidRequestError, match="no path was specified"):
        parse({}, READ_OPTIONS)


def test_several_paths_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"one path can be loaded at a time.*unionByName"):
        parse({"paths": '["/a", "/b"]'}, READ_OPTIONS)


def test_options_of_the_store_go_to_the_store_and_are_not_shown() -> None:
    given = {
        "path": "s3://b/t",
        "aws_secret_access_key": "hush",
        "storage.endpoint": "y",
        "region": "r",
    }
    options = parse(given, READ_OPTIONS)
    assert options.location.storage_options == {
        "aws_secret_access_key": "hush",
        "endpoint": "y",
        "region": "r",
    }
    assert options.rest == {}
    assert "hush" not in repr(options)


def test_a_time_with_a_zone_is_that_time() -> None:
    assert parse_time("1970-01-01T02:00:00+02:00") == AsOf(0)


def test_seconds_with_a_fraction_are_exact() -> None:
    assert parse_time("1769884200.123457") == AsOf(1769884200123457)


def test_text_that_is_not_a_time_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="is not a valid time"):
        parse_time("yesterday")


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("", ("/t",)),
        ("/shared", ("/t", "/shared")),
        ('["/a,b", "s3://c/d"]', ("/t", "/a,b", "s3://c/d")),
    ],
)
def test_roots_are_one_path_or_a_list(text: str, roots: tuple[str, ...]) -> None:
    options = parse({"path": "/t", "CONFINETO": text, "region": "r"}, READ_OPTIONS)
    assert options.location.confine_to == roots
    assert options.location.storage_options == {"region": "r"}
    assert location_at("/t", options_for(options.location)) == options.location


@pytest.mark.parametrize("text", ["[1]", "[", '["a"'])
def test_roots_that_are_no_list_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="confineTo"):
        parse({"path": "/t", "confineTo": text}, READ_OPTIONS)
