"""Tags and branches as in pylance."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance as official
import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import InvalidRequestError, RefNotFoundError
from tests.support.read_tables import versioned


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with three tags and a branch."""
    path = tmp_path_factory.mktemp("refs") / "t.lance"
    versioned(path)
    return path


def test_tags_are_those_of_pylance(root: Path) -> None:
    assert lance.dataset(root).tags.list() == official.dataset(root).tags.list()


def test_branches_are_those_of_pylance(root: Path) -> None:
    theirs: dict[str, Any] = official.dataset(root).branches.list()
    assert lance.dataset(root).branches.list() == theirs


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_order_is_that_of_pylance(root: Path, order: str | None) -> None:
    ours, theirs = lance.dataset(root), official.dataset(root)
    assert ours.tags.list_ordered(order) == theirs.tags.list_ordered(order)
    names = [name for name, _ in ours.branches.list_ordered(order)]
    assert names == [name for name, _ in theirs.branches.list_ordered(order)]


def test_unknown_order_is_refused(root: Path) -> None:
    with pytest.raises(InvalidRequestError, match="order"):
        lance.dataset(root).tags.list_ordered("sideways")


def test_times_have_a_zone(root: Path) -> None:
    created = lance.dataset(root).tags.list()["first"]["created_at"]
    assert isinstance(created, datetime)
    assert created.tzinfo is not None


def test_times_of_other_writers_have_any_offset(tmp_path: Path) -> None:
    ds = lance.write_dataset(pa.table({"a": [1]}), tmp_path / "t.lance")
    ds.tags.create("first")
    document = tmp_path / "t.lance/_refs/tags/first.json"
    body = json.loads(document.read_text())
    document.write_text(json.dumps({**body, "createdAt": "2024-05-06T07:08:09.5+05:30"}))

    created = ds.tags.list()["first"]["created_at"]
    assert created == datetime(2024, 5, 6, 1, 38, 9, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(("tag", "version"), [("first", 1), ("then", 2), ("aside", 3)])
def test_version_of_a_tag(root: Path, tag: str, version: int) -> None:
    assert lance.dataset(root).tags.get_version(tag) == version


def test_unknown_tag_is_not_found(root: Path) -> None:
    with pytest.raises(RefNotFoundError, match="Ref not found error: tag nosuch does not exist"):
        lance.dataset(root).tags.get_version("nosuch")


def test_branch_shows_the_refs_of_its_table(root: Path) -> None:
    main = lance.dataset(root)
    branch = main.checkout_version(("feat/x", None))
    assert branch.tags.list() == main.tags.list()
    assert branch.branches.list() == main.branches.list()
