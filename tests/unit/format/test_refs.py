"""Tag and branch documents of every release, and in the official form when written."""

from __future__ import annotations

import json

import pytest

from lancelake.errors import CorruptTableError
from lancelake.format import refs
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import Version
from lancelake.format.refs import Branch, Fork, Tag
from tests.unit.format.golden.files import RELEASES, read

TAG = b'{"branch": null, "version": 1, "manifestSize": 9}'
BRANCH = b'{"parentBranch": null, "parentVersion": 2, "createAt": 3, "manifestSize": 4}'


def without(document: bytes, key: str) -> bytes:
    body = json.loads(document)
    del body[key]
    return json.dumps(body).encode()


def having(document: bytes, key: str, value: object) -> bytes:
    return json.dumps({**json.loads(document), key: value}).encode()


def test_a_tag_by_the_4_line_is_written_as_it_was():
    data = read("4.0.2", "tag.json")

    assert refs.encode_tag(refs.decode_tag(data)) == data


def test_a_tag_by_the_14_line_is_written_as_it_was():
    data = read("14.0.2", "tag.json")

    assert refs.encode_tag(refs.decode_tag(data)) == data


@pytest.mark.parametrize("name", ["branch.json", "sub_branch.json"])
def test_a_branch_by_the_4_line_is_written_as_it_was(name):
    data = read("4.0.2", name)

    assert refs.encode_branch(refs.decode_branch(data)) == data


@pytest.mark.parametrize("release", RELEASES)
def test_a_branch_continues_the_lineage_of_its_parent(release):
    parent = refs.decode_branch(read(release, "branch.json"))
    child = refs.decode_branch(read(release, "sub_branch.json"))
    assert parent.lineage is not None
    assert child.lineage is not None

    assert (child.parent_branch, child.lineage[:-1]) == ("dev", parent.lineage)


def test_a_tag_of_a_branch_names_it():
    assert refs.decode_tag(having(TAG, "branch", "dev")).branch == "dev"


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-05-06T07:08:09.123456789Z", "2024-05-06T07:08:09.123456"),
        ("2024-05-06T07:08:09.123456789+00:00", "2024-05-06T07:08:09.123456"),
        ("2024-05-06T07:08:09.1-00:00", "2024-05-06T07:08:09.100000"),
        ("2024-05-06T07:08:09+05:30", "2024-05-06T01:38:09.000000"),
        ("2024-05-06t07:08:09z", "2024-05-06T07:08:09.000000"),
        ("2016-12-31 23:59:60Z", "2016-12-31T23:59:59.000000"),
    ],
)
def test_the_time_of_a_tag_has_any_offset(text, utc):
    assert f"{refs.tag_time(text):%Y-%m-%dT%H:%M:%S.%f%z}" == f"{utc}+0000"


@pytest.mark.parametrize(
    "text", ["", "then", "2024-05-06T07:08:09", "2024-13-06T07:08:09Z", "0001-01-01T00:00:00+01:00"]
)
def test_a_time_that_is_none_is_damage(text):
    with pytest.raises(CorruptTableError, match="not RFC 3339"):
        refs.tag_time(text)


def test_a_branch_of_an_old_release_has_no_lineage():
    assert refs.decode_branch(BRANCH).lineage is None


def test_a_branch_without_lineage_is_written_without_one():
    assert "identifier" not in json.loads(refs.encode_branch(refs.decode_branch(BRANCH)))


def test_a_document_is_indented_by_two_and_has_no_newline_at_the_end():
    tag = Tag(branch=None, version=Version(2), manifest_size=5)

    assert refs.encode_tag(tag) == b'{\n  "branch": null,\n  "version": 2,\n  "manifestSize": 5\n}'


def test_a_branch_is_written_in_the_order_of_official_releases():
    branch = Branch(
        parent_branch="a",
        parent_version=Version(2),
        create_at=3,
        manifest_size=4,
        lineage=(Fork(version=Version(2), uuid="u"),),
        metadata=FrozenMap({"k": "v"}),
    )

    assert list(json.loads(refs.encode_branch(branch))) == [
        "parentBranch",
        "identifier",
        "parentVersion",
        "createAt",
        "manifestSize",
        "metadata",
    ]


def test_text_outside_ascii_is_written_as_it_is():
    tag = Tag(branch="é", version=Version(2), manifest_size=5)

    assert "é".encode() in refs.encode_tag(tag)


@pytest.mark.parametrize("value", [None, 1.5, [1, {"a": "b"}], "text"])
def test_keys_of_a_newer_release_are_kept_in_a_tag(value):
    again = json.loads(refs.encode_tag(refs.decode_tag(having(TAG, "newKey", value))))

    assert again["newKey"] == value


def test_keys_of_a_newer_release_are_kept_in_a_branch():
    again = json.loads(refs.encode_branch(refs.decode_branch(having(BRANCH, "newKey", [1]))))

    assert again["newKey"] == [1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b" " * (1 << 21),
        without(TAG, "version"),
        having(TAG, "version", -1),
        having(TAG, "version", "1"),
        having(TAG, "version", 1.0),
        having(TAG, "version", True),
        having(TAG, "version", 1 << 64),
        having(TAG, "branch", 5),
        having(TAG, "manifestSize", None),
        having(TAG, "createdAt", 5),
        having(TAG, "metadata", {"a": 1}),
        having(TAG, "metadata", []),
        having(TAG, "newKey", float("nan")),
        having(TAG, "newKey", "\ud800"),
    ],
)
def test_a_tag_that_makes_no_sense_is_damage(data):
    with pytest.raises(CorruptTableError):
        refs.decode_tag(data)


@pytest.mark.parametrize(
    "data",
    [
        b"null",
        without(BRANCH, "parentVersion"),
        having(BRANCH, "parentBranch", 1),
        having(BRANCH, "createAt", "now"),
        having(BRANCH, "identifier", []),
        having(BRANCH, "identifier", {}),
        having(BRANCH, "identifier", {"version_mapping": 5}),
        having(BRANCH, "identifier", {"version_mapping": "ab"}),
        having(BRANCH, "identifier", {"version_mapping": ["ab"]}),
        having(BRANCH, "identifier", {"version_mapping": [[1]]}),
        having(BRANCH, "identifier", {"version_mapping": [[1, 2]]}),
        having(BRANCH, "identifier", {"version_mapping": [["1", "u"]]}),
    ],
)
def test_a_branch_that_makes_no_sense_is_damage(data):
    with pytest.raises(CorruptTableError):
        refs.decode_branch(data)
