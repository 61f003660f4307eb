"""Paths of the files of a table."""

from __future__ import annotations

import uuid

import pytest

from lancelake.format import layout

UUID = uuid.UUID("0f1e2d3c-4b5a-4697-8879-665544332211")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (layout.manifest("1.manifest"), "_versions/1.manifest"),
        (layout.transaction("0-a.txn"), "_transactions/0-a.txn"),
        (layout.data_file("x.lance"), "data/x.lance"),
        (
            layout.deletion_file(fragment_id=4, read_version=7, unique=99, suffix="arrow"),
            "_deletions/4-7-99.arrow",
        ),
        (layout.index_dir(UUID), "_indices/0f1e2d3c-4b5a-4697-8879-665544332211"),
        (layout.tag("v1"), "_refs/tags/v1.json"),
        (layout.branch("dev"), "_refs/branches/dev.json"),
        (layout.branch("a/b"), "_refs/branches/a%2Fb.json"),
        (layout.branch_root("a/b"), "tree/a/b"),
        (layout.tag("ä1"), "_refs/tags/%C3%A41.json"),
        (layout.branch("ö/ü"), "_refs/branches/%C3%B6%2F%C3%BC.json"),
        (layout.branch_root("ö/ü"), "tree/ö/ü"),
        (layout.VERSION_HINT, "_versions/latest_version_hint.json"),
    ],
)
def test_a_path_is_the_one_of_the_format(path, expected):
    assert path == expected


@pytest.mark.parametrize("name", ["v1", "x.y", "日"])
def test_a_tag_name_is_read_back_from_its_file_name(name):
    assert layout.tag_name(layout.tag(name).rsplit("/", 1)[-1]) == name


@pytest.mark.parametrize("name", ["dev", "a/b/c", "x.y", "ö/ü"])
def test_a_branch_name_is_read_back_from_its_file_name(name):
    file_name = layout.branch(name).rsplit("/", 1)[-1]

    assert layout.branch_name(file_name) == name
