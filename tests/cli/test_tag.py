"""`lancelake tag`: create, move, list and delete."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import Result

from lancelake.commit.snapshot import list_tags
from lancelake.storage.location import Location

Document = Callable[..., Any]
Run = Callable[..., Result]


def test_list_shows_tags(output: Callable[..., str], sound: Path) -> None:
    lines = output("tag", "list", sound).splitlines()
    assert lines[1].split()[:2] == ["first", "1"]
    assert lines[-1] == "1 tag"


def test_list_shows_times_in_utc(output: Callable[..., str], table: Path) -> None:
    document = table / "_refs/tags/first.json"
    body = json.loads(document.read_text())
    document.write_text(json.dumps({**body, "createdAt": "2024-05-06T07:08:09.5+05:30"}))
    assert "2024-05-06T01:38:09" in output("tag", "list", table)


def test_create_names_the_latest_version(document: Document, table: Path) -> None:
    body = document("tag", "create", table, "new")
    assert (body["name"], body["branch"], body["version"], body["before"]) == ("new", None, 5, None)
    assert list_tags(Location.parse(table))["new"].version == 5


def test_create_names_a_version_of_a_branch(document: Document, table: Path) -> None:
    body = document("tag", "create", table, "new", "--at", "side:")
    assert (body["branch"], body["version"]) == ("side", 6)


def test_create_from_the_uri_of_a_branch_is_recorded_on_the_main_line(
    document: Document, table: Path
) -> None:
    document("tag", "create", table / "tree" / "side", "new")
    assert list_tags(Location.parse(table))["new"].branch == "side"


def test_create_of_a_taken_name_exits_with_4(run: Run, sound: Path) -> None:
    result = run("tag", "create", sound, "first")
    assert (result.exit_code, result.stdout) == (4, "")


def test_create_of_a_bad_name_exits_with_2(run: Run, sound: Path) -> None:
    assert run("tag", "create", sound, "no/such name").exit_code == 2


def test_move_prints_both_versions(output: Callable[..., str], table: Path) -> None:
    assert "3  was 1" in output("tag", "move", table, "first", "--at", "3")
    assert list_tags(Location.parse(table))["first"].version == 3


def test_move_of_a_missing_tag_exits_with_3(run: Run, sound: Path) -> None:
    assert run("tag", "move", sound, "nothing").exit_code == 3


def test_delete_forgets_the_tag_only(document: Document, table: Path) -> None:
    body = document("tag", "delete", table, "first")
    assert body["deleted"]["version"] == 1
    assert list_tags(Location.parse(table)) == {}
    assert document("count", table, "--at", "1")["rows"] == 20


def test_delete_of_a_missing_tag_exits_with_3(run: Run, sound: Path) -> None:
    assert run("tag", "delete", sound, "nothing").exit_code == 3


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    assert "Commands:" in run("tag").output
