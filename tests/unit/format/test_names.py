"""File names, and valid names of tags and branches."""

from __future__ import annotations

import uuid

import pytest

from lancelake.errors import InvalidNameError
from lancelake.format.layout import (
    DETACHED_BIT,
    ManifestNaming,
    data_file_name,
    ensure_branch_name,
    ensure_tag_name,
    manifest_name,
    parse_manifest_name,
    transaction_file_name,
)

GOOD_TAGS = ["v1", "1.0", "a-b_c", "é", "main"]
BAD_TAGS = ["", ".a", "a.", "a..b", "a.lock", "a/b", "a b", "a\\b", "a%2Fb", "../x"]
GOOD_BRANCHES = ["dev", "feature/x", "a/b/c", "v1.0/y", ".x", "a/.b", "a/b.", "a.lock/b", "ö/ü"]
BAD_BRANCHES = [
    *(
        "",
        "main",
        "/a",
        "a/",
        "a//b",
        "a\\b",
        "a/../b",
        "a/./b",
        ".",
        "a.lock",
        "a/b.lock",
        "a b",
        "a%2Fb",
    ),
]


def test_a_v2_name_counts_down_in_twenty_digits():
    assert manifest_name(1, ManifestNaming.V2) == "18446744073709551614.manifest"


def test_a_v1_name_is_the_plain_number():
    assert manifest_name(12, ManifestNaming.V1) == "12.manifest"


@pytest.mark.parametrize("naming", list(ManifestNaming))
def test_a_detached_name_is_the_number_after_a_d(naming):
    assert manifest_name(DETACHED_BIT | 5, naming) == "d9223372036854775813.manifest"


@pytest.mark.parametrize("naming", list(ManifestNaming))
@pytest.mark.parametrize("version", [0, 1, 9, 10**9, DETACHED_BIT - 1])
def test_a_version_is_read_back_from_its_name(version, naming):
    found = parse_manifest_name(manifest_name(version, naming))

    assert found is not None
    assert (found.version, found.naming) == (version, naming)


def test_a_detached_version_is_read_back_from_its_name():
    found = parse_manifest_name("d9223372036854775813.manifest")

    assert found is not None
    assert (found.version, found.naming) == (DETACHED_BIT | 5, ManifestNaming.V2)


@pytest.mark.parametrize(
    "name",
    [
        "1.manifest#1",
        "1.manifest-2f0a",
        ".tmp1.manifest",
        "latest_version_hint.json",
        "manifest",
        ".manifest",
        "x.manifest",
        "-1.manifest",
        "1_0.manifest",
        "\u0661.manifest",
        "d.manifest",
        "d5.manifest",
        "dd9223372036854775813.manifest",
        "99999999999999999999.manifest",
        "d99999999999999999999.manifest",
        "00000000000000000001.manifest",
    ],
)
def test_a_name_of_something_else_is_ignored(name):
    assert parse_manifest_name(name) is None


def test_a_data_file_name_begins_with_twenty_four_binary_digits():
    name = data_file_name(uuid.UUID("a50ff1d2-0000-4000-8000-0123456789ab"))

    assert name == "101001010000111111110001" + "d2000040008000" + "0123456789ab" + ".lance"


def test_a_transaction_file_name_has_the_version_that_was_read():
    assert transaction_file_name(3, "0a-1b") == "3-0a-1b.txn"


@pytest.mark.parametrize("name", GOOD_TAGS)
def test_a_good_tag_name_is_taken(name):
    ensure_tag_name(name)


@pytest.mark.parametrize("name", BAD_TAGS)
def test_a_bad_tag_name_is_refused(name):
    with pytest.raises(InvalidNameError):
        ensure_tag_name(name)


@pytest.mark.parametrize("name", GOOD_BRANCHES)
def test_a_good_branch_name_is_taken(name):
    ensure_branch_name(name)


@pytest.mark.parametrize("name", BAD_BRANCHES)
def test_a_bad_branch_name_is_refused(name):
    with pytest.raises(InvalidNameError):
        ensure_branch_name(name)
