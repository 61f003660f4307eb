"""Tags and branches are read as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelake.commit.snapshot import (
    branch_location,
    list_branches,
    list_tags,
    load_branch,
    load_tag,
)
from lancelake.errors import CorruptTableError, InvalidNameError, RefNotFoundError
from lancelake.storage.location import Location
from tests.support.read_tables import versioned


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a table with three tags and a branch."""
    versioned(tmp_path / "t.lance")
    return tmp_path / "t.lance"


def test_tags_come_sorted_with_what_they_name(root: Path) -> None:
    tags = list_tags(Location.parse(root))
    named = [(name, tag.branch, tag.version) for name, tag in tags.items()]
    assert named == [("aside", "feat/x", 3), ("first", None, 1), ("then", None, 2)]


def test_branches_come_with_where_they_forked(root: Path) -> None:
    branches = list_branches(Location.parse(root))
    assert [(n, b.parent_branch, b.parent_version) for n, b in branches.items()] == [
        ("feat/x", None, 2)
    ]


def test_table_without_refs_has_none(tmp_path: Path) -> None:
    assert (list_tags(Location.parse(tmp_path)), list_branches(Location.parse(tmp_path))) == (
        {},
        {},
    )


def test_other_files_are_passed_over(root: Path) -> None:
    (root / "_refs/tags/first.json.tmp").write_bytes(b"")
    (root / "_refs/branches/.hidden").write_bytes(b"")
    assert len(list_tags(Location.parse(root))) == 3
    assert len(list_branches(Location.parse(root))) == 1


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": "one"}', b"\xff"])
def test_the_error_of_a_damaged_tag_names_the_table(root: Path, data: bytes) -> None:
    (root / "_refs/tags/first.json").write_bytes(data)
    with pytest.raises(CorruptTableError, match=str(root)):
        load_tag(Location.parse(root), "first")


@pytest.mark.parametrize("data", [b"", b"{}", b"null"])
def test_the_error_of_a_damaged_branch_names_the_table(root: Path, data: bytes) -> None:
    (root / "_refs/branches/feat%2Fx.json").write_bytes(data)
    with pytest.raises(CorruptTableError, match=str(root)):
        load_branch(Location.parse(root), "feat/x")


@pytest.mark.parametrize("load", [load_tag, load_branch])
def test_unknown_name_is_not_found(root: Path, load) -> None:
    with pytest.raises(RefNotFoundError, match="nosuch does not exist"):
        load(Location.parse(root), "nosuch")


@pytest.mark.parametrize(
    ("load", "name", "said"),
    [
        (load_tag, "frist", "Did you mean first?"),
        (load_branch, "feat/y", "Did you mean feat/x?"),
        (load_branch, "zzz", "Known branches: feat/x."),
    ],
)
def test_unknown_name_is_answered_with_those_there_are(
    root: Path, load, name: str, said: str
) -> None:
    with pytest.raises(RefNotFoundError) as caught:
        load(Location.parse(root), name)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["", "..", "a b", "x/../y", "\x00"])
@pytest.mark.parametrize("load", [load_tag, load_branch])
def test_name_that_is_none_is_refused(root: Path, name: str, load) -> None:
    with pytest.raises(InvalidNameError):
        load(Location.parse(root), name)


@pytest.mark.parametrize(
    ("name", "below"), [(None, ""), ("main", ""), ("dev", "/tree/dev"), ("a/b", "/tree/a/b")]
)
def test_branch_is_below_the_table(name: str | None, below: str) -> None:
    assert branch_location(Location.parse("/t"), name).uri == f"/t{below}"
