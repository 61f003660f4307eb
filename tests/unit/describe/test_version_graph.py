"""The graph of versions and branches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake
from lancelake.describe.version_graph import VersionGraph
from lancelake.format import layout
from lancelake.storage.location import Location


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Location:
    """Return a table with five versions, two branches of version 3, and one of a branch."""
    path = tmp_path_factory.mktemp("graph") / "t.lance"
    ds = lancelake.write_dataset(pa.table({"a": [1]}), path)
    for number in range(2, 4):
        ds = lancelake.write_dataset(pa.table({"a": [number]}), path, mode="append")
    left = ds.create_branch("left")
    lancelake.write_dataset(pa.table({"a": [0]}), left, mode="append")
    left.create_branch("left/inner", left.version)
    ds.create_branch("right")
    lancelake.write_dataset(pa.table({"a": [4]}), path, mode="append")
    ds.tags.create("third", 3)
    return Location.parse(path)


def _rows(page: dict[str, Any]) -> list[tuple[str, int]]:
    return [(row["branch"], row["version"]) for row in page["rows"]]


def test_every_version_follows_those_made_from_it(table: Location) -> None:
    graph = VersionGraph.load(table)
    rows = _rows(graph.page(0, 100))
    for line in graph.lines.values():
        versions = [version for branch, version in rows if branch == line.branch]
        assert versions == sorted(versions, reverse=True)
        if line.parent is not None:
            fork = rows.index((line.parent, line.parent_version or 0))
            assert all(rows.index((line.branch, version)) < fork for version in versions)


def test_pages_together_are_all_versions(table: Location) -> None:
    graph = VersionGraph.load(table)
    whole = graph.page(0, 100)
    parts = [row for start in range(0, whole["total"], 2) for row in graph.page(start, 2)["rows"]]
    assert parts == whole["rows"]


def test_a_page_has_the_lines_of_its_rows(table: Location) -> None:
    graph = VersionGraph.load(table)
    for start in range(len(graph.rows)):
        page = graph.page(start, 1)
        assert page["rows"][0]["branch"] in {line["branch"] for line in page["lines"]}


def test_lines_on_a_lane_do_not_overlap(table: Location) -> None:
    lines = VersionGraph.load(table).lines.values()
    for one in lines:
        for other in lines:
            if one is not other and one.lane == other.lane:
                first, second = sorted((one, other), key=lambda line: line.first_row)
                end = first.last_row if first.fork_row is None else first.fork_row
                assert end <= second.first_row


def test_tags_and_branches_are_at_their_versions(table: Location) -> None:
    rows = VersionGraph.load(table).page(0, 100)["rows"]
    third = next(r for r in rows if (r["branch"], r["version"]) == ("main", 3))
    assert (third["tags"], third["forks"]) == (["third"], ["left", "right"])


def test_the_changes_at_the_end_of_a_page_are_known(table: Location) -> None:
    page = VersionGraph.load(table).page(0, 1)
    assert page["rows"][0]["change"]["rows_added"] == 1


def test_a_branch_of_a_version_that_is_gone_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ds = lancelake.write_dataset(pa.table({"a": [1]}), path)
    ds.create_branch("old")
    lancelake.write_dataset(pa.table({"a": [2]}), path, mode="append")
    oldest = max((path / layout.VERSIONS).iterdir())
    oldest.unlink()
    graph = VersionGraph.load(Location.parse(path))
    assert graph.lines["old"].fork_row is None
    assert ("old", 1) in _rows(graph.page(0, 10))


def test_branches_that_are_each_the_parent_of_the_other_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ds = lancelake.write_dataset(pa.table({"a": [1]}), path)
    for name in ("one", "two"):
        ds.create_branch(name)
    for name, other in (("one", "two"), ("two", "one")):
        (found,) = (path / layout.BRANCHES).glob(f"{name}*")
        text = found.read_text().replace('"parentBranch": null', f'"parentBranch": "{other}"')
        found.write_text(text)
    rows = _rows(VersionGraph.load(Location.parse(path)).page(0, 10))
    assert sorted(rows) == [("main", 1), ("one", 1), ("two", 1)]
